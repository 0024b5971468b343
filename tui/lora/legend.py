"""What the numbers of the LoRA screens mean."""

from tui.legend import Number

LEGEND = (
    Number("step", "updates of the weights made, of all there are to be"),
    Number("loss", "mean of -log p of the answers' tokens in nats; of an adapter on data it was not trained on"),
    Number("◐ n %", "of an adapter: so much of an evaluation of it is done; ! where no keeper holds that"),
    Number("mean of n", "of the newest n training losses, a sixth of the steps so far: one batch says little"),
    Number("eval", "the same on the validation part, as of the newest evaluation (● in the curve)"),
    Number("left", "at the pace of the newest 20 steps, without evaluations; of an ended training when it began"),
    Number("learning rate", "as of the newest step: it rises over the warm-up and then falls"),
    Number("tokens/s", "tokens of the training part gone through in a second"),
    Number("GPU", "memory that the trainer holds, in GiB (2^30 bytes)"),
    Number("memory", "that of the trainer where it has no GPU, in GiB"),
    Number("gradient", "norm of the gradient before it is clipped; 0 throughout: nothing is learned"),
    Number("r", "rank of the adapter; its changes are scaled by alpha / r"),
    Number("size", "of all files of the adapter, in MB of 10^6 bytes"),
    Number("served", "● servers that were started with it and have not ended; ○ none"),
    Number("measured", "adapter less base on the validation part, [95 % interval over records]; below 0 is better"),
    Number("perplexity", "e to the loss"),
    Number("train, valid.", "conversations in the two parts of a data set, which share none"),
    Number("tokens", "of the training part, with the chat template; – where no tokenizer was asked"),
)
