"""Every operator of the catalogue: it has a rule, or a reason why no builtin operators stand for it.

A new operator of the catalogue fails here until it has one or the other. What has a reason is still converted where
that is allowed: as a custom operator, or by the framework's own kernel (OpsSet.SELECT_TF_OPS).
"""

from __future__ import annotations

from each_row import each_row
from opwright.lite.convert.decompositions import RECURRENCES
from opwright.lite.convert.passes import DROP_CHECK, DROP_IDENTITY
from opwright.lite.convert.rules import RULES
from opwright.ops import registry

SPECIAL = "a special function, for which builtin operators give no form that is as accurate"
TRIGONOMETRIC = (
    "left to a custom operator, as the official converter does; exact by hand: atan2(x, 1), atan2(x, sqrt(1 - x^2))"
)
SOLVER = "a decomposition or solver of matrices: loops over rows, which no builtin operator does"
PACKED = "packed sequences with offsets (LoD): files have no such tensors"
DATASET = "datasets, iterators and optionals live outside models"
PYTHON = "runs Python"
SEEDED = "its numbers are promised to follow from the seed alone, and no builtin operator draws these"
REJECTING = "drawn by rejection: a loop without bound for each element"
TRANSFORM = "transforms over several dimensions but RFFT2D: no builtin operator"
TEXT = "no builtin operator reads text; variables and tables hold it only"
SECOND = "a second derivative, or one over volumes, of pools and convolutions: their places have no short form"
LISTS = "lists become tensors as a whole, in loops (lists/); what no loop carries in one shape has no form"
SECOND_OF_LOOPS = "a second derivative of a recurrence: a model that trains needs the first"
PATHS = "a loop over steps of sums over paths, for training"
RUNS = "runs of equal elements, merged while they violate an order: a loop whose state is a stack"
SPARSE_ROWS = "rows of sparse gradients by the index they bear: a search with an unknown number of results"
POSITIONS = "resampling at positions that are tensors: no builtin operator"
OWN_BOXES = "other thresholds, several classes or given overlaps: not the rule of NON_MAX_SUPPRESSION"

WITHOUT: dict[str, str] = {}


def _because(reason: str, *names: str) -> None:
    for name in " ".join(names).split():
        assert name not in WITHOUT
        WITHOUT[name] = reason


_because(
    SPECIAL,
    "Erfinv Lgamma Digamma Polygamma Zeta Igamma Igammac IgammaGradA Betainc Ndtri Dawsn Expint",
    "Spence FresnelCos FresnelSin BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e",
    "BesselK1 BesselK1e BesselY0 BesselY1 NextAfter CumulativeLogsumexp LinearRecurrence",
)
_because(TRIGONOMETRIC, "Atan Asin Acos")
_because(
    SOLVER,
    "Cholesky Qr Svd Lu Eig SelfAdjointEig MatrixInverse MatrixDeterminant LogMatrixDeterminant",
    "MatrixSolve MatrixTriangularSolve BandedTriangularSolve TridiagonalSolve MatrixExponential MatrixLogarithm",
    "MatrixSquareRoot",
)
_because(
    PACKED,
    "LodReset SequenceConcat SequenceContext SequenceContextGrad SequenceConv SequenceEnumerate",
    "SequenceErase SequenceExpand SequenceExpandAs SequencePad SequencePick SequencePlace SequencePool",
    "SequencePoolGrad SequenceRepad SequenceReshape SequenceReverse SequenceScatter SequenceSlice",
    "SequenceSoftmax SequenceSoftmaxGrad SequenceTake SequenceUnpad DynamicGru DynamicGruGrad DynamicLstm",
    "DynamicLstmGrad",
)
_because(SECOND_OF_LOOPS, "LSTMSequenceGradGrad GRUSequenceGradGrad")
_because(
    DATASET,
    "BuildDataset DatasetCardinality DatasetReduce IteratorHasNext IteratorNext IteratorNextAsOptional",
    "MakeIterator MakeOptional OptionalGetValue OptionalHasValue",
)
_because(PYTHON, "EagerPyFunc EagerPyFuncGrad PyFunc PyFuncStateless Print Timestamp")
_because(
    SEEDED,
    "StatelessMultinomial StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt",
    "StatelessRandomUniformInt StatelessShuffle StatelessTruncatedNormal StatelessRandomBinomial",
    "StatelessRandomGamma StatelessRandomPoisson StatelessSampleDistortedBoundingBox",
)
_because(REJECTING, "TruncatedNormal RandomGamma RandomPoisson SampleDistortedBoundingBox")
_because(TRANSFORM, "FFT2D FFT3D FFTND IFFT2D IFFT3D IFFTND IRFFT2D IRFFT3D IRFFTND RFFT3D RFFTND")
_because(
    TEXT,
    "AsString BytesSplit ReduceJoin RegexFullMatch RegexReplace StringFormat StringJoin StringLength",
    "StringLower StringNGrams StringSplit StringStrip StringToHashBucket StringToHashBucketFast",
    "StringToHashBucketStrong StringToNumber StringUpper Substr UnicodeDecode UnicodeDecodeRows",
    "UnicodeEncode UnicodeScript",
    "UnicodeTranscode UnsortedSegmentJoin",
)
_because(
    SECOND,
    "AvgPool3DGrad MaxPool3DGrad MaxPool3DGradGrad MaxPoolGradGrad Conv3DBackpropFilter",
    "ScaleAndTranslateGrad MaxPoolWithArgmax",
)
_because(
    LISTS,
    "ListAdd ListConcat ListFromTensor ListGather ListGet ListLength ListPop ListPush ListReserve",
    "ListResize ListScatter ListScatterAdd ListSet ListSplit ListStack ListUnset ListZerosLike",
)
_because(PATHS, "CTCBeamSearch CTCLoss")
_because(RUNS, "IsotonicRegression")
_because(SPARSE_ROWS, "MergeRows RowsAt")
_because(POSITIONS, "CropAndResize DrawBoundingBoxes")
_because(OWN_BOXES, "NonMaxSuppressionPadded NonMaxSuppressionWithOverlaps CombinedNonMaxSuppression")

# Taken care of before rules are asked: constants stay, names go, reads and writes of variables are rewritten (freeze),
# recurrences become loops (decompositions.py).
BEFORE = {
    "Const",
    *DROP_IDENTITY.ops.split(),
    "AssignAddVariable",
    "AssignSubVariable",
    "ScatterAddVariable",
    "ScatterDivVariable",
    "ScatterMaxVariable",
    "ScatterMinVariable",
    "ScatterMulVariable",
    "ScatterSubVariable",
    "ScatterUpdateVariable",
    "UpdateRows",
    "UpdateVariable",
    "FusionInputs",
    "FusionResults",
    *DROP_CHECK.ops.split(),
    *(rule.ops for rule in RECURRENCES),
}


def test_every_operator_has_a_rule_or_a_reason() -> None:
    catalogue = set(registry.catalogue())
    assert catalogue - set(RULES) - set(WITHOUT) - BEFORE == set()
    assert (set(WITHOUT) | BEFORE - set(DROP_IDENTITY.ops.split())) - catalogue == set()


def test_no_operator_has_both() -> None:
    assert set(WITHOUT) & set(RULES) == set()


@each_row("name", sorted(RULES))
def test_every_rule_says_why(name: str) -> None:
    names = [rule.name for rule in RULES[name]]
    assert len(set(names)) == len(names)
    assert all(rule.why for rule in RULES[name])
