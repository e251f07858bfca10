"""What a tutor says to each known mistake in scaled embeddings."""

from ttutor.exercises.exercise import Mistake
from ttutor.exercises.transformer import embedding_scale_mistakes as wrong

__all__ = ["MISTAKES"]

MISTAKES = (
    Mistake(
        id="no_scale",
        says="You return the rows as they are. Next to the positions, whose entries lie between −1 and 1, such "
        "embeddings are √d_model too small. What does section 3.4 of the paper do?",
        answers=(wrong.no_scale,),
    ),
    Mistake(
        id="div",
        says="Your embeddings have become smaller: you divide by √d_model, as attention's scores are divided by "
        "√d_head. Rows that start small need the opposite.",
        answers=(wrong.div,),
    ),
    Mistake(
        id="mul_d",
        says="You multiply by d_model, not by its root. The rows' entries start with a standard deviation of "
        "1/√d_model: which factor brings that to 1?",
        answers=(wrong.mul_d,),
    ),
    Mistake(
        id="scale_vocab",
        says="Scale with the width, not with the vocabulary: you take the root of the number of rows. Which axis "
        "of the table has d_model entries?",
        answers=(wrong.scale_vocab,),
    ),
    Mistake(
        id="scale_tokens",
        says="Your factor depends on how many tokens the sequence has, so that a word means more in a longer "
        "sentence. Whose size should it be made from?",
        answers=(wrong.scale_tokens,),
    ),
    Mistake(
        id="whole_root",
        says="Right where d_model is a square number; else your root is cut down to a whole number. √7 is 2.65, not 2.",
        answers=(wrong.whole_root, wrong.whole_root_cut),
    ),
    Mistake(
        id="normalised",
        says="All your vectors have one length. The table's rows may differ in length, and that is learnt: "
        "multiply each by the same factor, and measure none.",
        answers=(wrong.normalised, wrong.unit_variance),
    ),
    Mistake(
        id="shifted_ids",
        says="Each token gets the row of its neighbour: ids count from 0, and so do rows.",
        answers=(wrong.shifted_ids,),
    ),
    Mistake(
        id="padding_zeroed",
        says="Token 0 comes out as zeros. You were given no padding id: here 0 is a token like any other, and "
        "hiding padding is the masks' business.",
        answers=(wrong.padding_zeroed,),
    ),
    Mistake(
        id="first_sequence_only",
        says="You look up the first sequence alone. A table can be indexed with a tensor of any shape: what "
        "happened to the axis of the batch?",
        answers=(wrong.one_row_per_token,),
    ),
    Mistake(
        id="columns",
        says="You take columns of the table. It has one row for each token of the vocabulary.",
        answers=(wrong.columns,),
    ),
    Mistake(
        id="features_first",
        says="The right numbers, with features before tokens. In this course features are always the last axis.",
        answers=(wrong.features_first,),
    ),
    Mistake(
        id="summed",
        says="You add up the tokens of a sequence, which is a bag of words. Each token keeps a vector of its own.",
        answers=(wrong.summed,),
    ),
    Mistake(
        id="table_changed",
        says="Your result is right this time, but you have scaled the table itself: in the second call it would "
        "be scaled twice. Scale what you took from it.",
        answers=(wrong.scaled_once_more,),
    ),
    Mistake(
        id="detached",
        says="The vectors are right, but no gradient reaches the table, so that it would never be trained: look "
        "for `.detach()`, `.data`, `no_grad` or `from_pretrained`, which freezes.",
        answers=(wrong.detached, wrong.data_of_the_table, wrong.frozen),
    ),
    Mistake(
        id="new_layer",
        says="Your vectors are random: you make a new `nn.Embedding`, which brings a table of its own. The rows "
        "stand in `table`.",
        answers=(wrong.new_layer,),
    ),
    Mistake(
        id="fixed_dtype",
        says="The numbers are right, but a table in float64 gives vectors in float32. Somewhere your code names "
        "a dtype, or takes the default one, instead of the table's.",
        answers=(wrong.new_buffer, wrong.float_one_hot),
    ),
    Mistake(
        id="counted_classes",
        says="An error, unless the last token of the vocabulary happens to be in the text: you let `one_hot` "
        "guess the number of classes from the ids. Who knows how many there are?",
        answers=(wrong.counted_classes,),
    ),
)
