"""NVML as `engine.gpus.gpu` asks it, with the figures that an H200 under load really gave."""

from types import SimpleNamespace
from typing import Any

MIB = 2**20
TOTAL, USED, RESERVED = 143771 * MIB, 133789 * MIB, 600 * MIB


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


class NVMLError_GpuIsLost(NVMLError):
    def __str__(self) -> str:
        return "GPU is lost"


class NVMLError_Uninitialized(NVMLError):
    def __str__(self) -> str:
        return "Uninitialized"


class NVMLError_NoPermission(NVMLError):
    def __str__(self) -> str:
        return "Insufficient Permissions"


class NVMLError_LibraryNotFound(NVMLError):
    def __str__(self) -> str:
        return "NVML Shared Library Not Found"


class NVMLError_LibRmVersionMismatch(NVMLError):
    def __str__(self) -> str:
        return "RM has detected an NVML/RM version mismatch."


class FakeNvml:
    """GPUs all alike. `broken` are functions that say NotSupported, `lost` the positions of GPUs that fell off the bus,
    `hidden` of those we may not see; with `gone` every function but nvmlInit raises it. `calls` counts how often each
    was asked."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 33554472
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __init__(
        self, count: int = 1, broken: set[str] | None = None, init_error: NVMLError | None = None, throttle: int = 0
    ) -> None:
        self.count = count
        self.broken = broken or set()
        self.init_error = init_error
        self.throttle = throttle
        self.lost: set[int] = set()
        self.hidden: set[int] = set()
        self.gone: Exception | None = None
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        answer = getattr(type(self), f"answer_{name}", None)
        if answer is None:
            raise AttributeError(name)

        def ask(*arguments: Any, **options: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            if name in self.broken:
                raise NVMLError_NotSupported
            if self.gone is not None and name != "nvmlInit":
                raise self.gone
            by_position = name == "nvmlDeviceGetHandleByIndex"
            asked = answer(self, *arguments) if by_position else next(iter(arguments), None)
            if asked in {f"handle {position}" for position in self.lost}:
                raise NVMLError_GpuIsLost
            if by_position and arguments[0] in self.hidden:
                raise NVMLError_NoPermission
            return answer(self, *arguments, **options)

        return ask

    def answer_nvmlInit(self) -> None:
        if self.init_error:
            raise self.init_error

    def answer_nvmlShutdown(self) -> None:
        pass

    def answer_nvmlDeviceGetCount(self) -> int:
        return self.count

    def answer_nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.159.04"

    def answer_nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def answer_nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"handle {index}"

    def answer_nvmlDeviceGetName(self, handle: str) -> bytes:
        return b"NVIDIA H200"

    def answer_nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"GPU-{handle[-1] * 8}-0000"

    def answer_nvmlDeviceGetMemoryInfo(self, handle: str, version: int | None = None) -> SimpleNamespace:
        if version:
            free = TOTAL - USED - RESERVED
            return SimpleNamespace(total=TOTAL, used=USED, free=free, reserved=RESERVED)
        return SimpleNamespace(total=TOTAL, used=USED + RESERVED, free=TOTAL - USED - RESERVED)

    def answer_nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(gpu=98, memory=41)

    def answer_nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 121833

    def answer_nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 700000

    def answer_nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        return 17666862

    def answer_nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 3201}[kind]

    def answer_nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 40

    def answer_nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return self.throttle

    def answer_nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.throttle

    def answer_nvmlDeviceGetPcieThroughput(self, handle: str, direction: int) -> int:
        return {self.NVML_PCIE_UTIL_TX_BYTES: 512, self.NVML_PCIE_UTIL_RX_BYTES: 2048}[direction]

    def answer_nvmlDeviceGetTotalEccErrors(self, handle: str, kind: int, counter: int) -> int:
        return {0: 12, 1: 0}[kind]

    def answer_nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 3201}[kind]

    def answer_nvmlDeviceGetTemperatureThreshold(self, handle: str, threshold: int) -> int:
        return {1: 87}[threshold]

    def answer_nvmlDeviceGetCurrPcieLinkGeneration(self, handle: str) -> int:
        return 4

    def answer_nvmlDeviceGetMaxPcieLinkGeneration(self, handle: str) -> int:
        return 5

    def answer_nvmlDeviceGetCurrPcieLinkWidth(self, handle: str) -> int:
        return 8

    def answer_nvmlDeviceGetMaxPcieLinkWidth(self, handle: str) -> int:
        return 16

    def answer_nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return [0, 1]

    def answer_nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(pid=693, usedGpuMemory=133780 * MIB),
            SimpleNamespace(pid=7, usedGpuMemory=None),
        ]

    def answer_nvmlSystemGetProcessName(self, pid: int) -> bytes:
        if pid == 7:
            raise NVMLError_NotSupported
        return b"VLLM::EngineCore\x1b[31m"
