"""Which operators of the catalogue have no lowering rule, and why: functions run them between native calls.

A new operator fails here until it has a rule or a reason. `pytest -s -k table` prints which operators of the rows of
all tables leave a native call, of which types, and the reason that the report on a function states.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from opwright.compiler import partitioner
from opwright.compiler.lowering.registry import MODULES
from opwright.ops import registry

sys.path.append(str(Path(__file__).parents[2] / "ops"))
import checks
import test_operators
import test_rules_on_rows

REASONS = {
    "folded before rules are read, as values that follow from shapes, or removed": (
        "BroadcastArgs Const Identity Rank Shape Size StopGradient"
    ),
    "strings": (
        "AsString BytesSplit ReduceJoin RegexFullMatch RegexReplace StringFormat StringJoin StringLength StringLower "
        "StringNGrams StringSplit StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong "
        "StringToNumber StringUpper Substr UnicodeDecode UnicodeDecodeRows UnicodeEncode UnicodeScript "
        "UnicodeTranscode UnsortedSegmentJoin"
    ),
    "Python and the world outside: callbacks, clocks, datasets, tables, messages": (
        "Assert BuildDataset CheckNumerics DatasetCardinality DatasetReduce EagerPyFunc EagerPyFuncGrad "
        "IteratorHasNext IteratorNext IteratorNextAsOptional LookupTableFind MakeIterator MakeOptional "
        "OptionalGetValue OptionalHasValue Print PyFunc PyFuncStateless Timestamp"
    ),
    "state: handles of variables are read, and regions of updates written, without a rule": (
        "AssignVariable ReadVariable ScatterAddVariable ScatterDivVariable ScatterMaxVariable ScatterMinVariable "
        "ScatterMulVariable ScatterSubVariable ScatterUpdateVariable"
    ),
    "random numbers whose key is drawn first (functional_control_flow.py), or whose algorithm is NumPy's": (
        "Multinomial RandomGamma RandomPoisson RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
        "SampleDistortedBoundingBox StatelessRandomBinomial StatelessRandomGamma StatelessRandomPoisson "
        "StatelessSampleDistortedBoundingBox StatelessShuffle StatelessTruncatedNormal TruncatedNormal"
    ),
    "complex numbers, whose parts other operators compute (complex_parts.py)": "Angle Conj",
    "LAPACK, by NumPy": (
        "BandedTriangularSolve Eig MatrixExponential MatrixLogarithm MatrixSquareRoot Qr SelfAdjointEig Svd "
        "TridiagonalSolve"
    ),
    "special functions without vector code": (
        "BesselJ0 BesselJ1 BesselY0 BesselY1 Betainc Dawsn Expint FresnelCos FresnelSin Igamma IgammaGradA Igammac "
        "NextAfter Spence Zeta"
    ),
    "sizes that follow from elements": (
        "CombinedNonMaxSuppression DynamicPartition DynamicStitch NonMaxSuppression NonMaxSuppressionPadded "
        "NonMaxSuppressionWithOverlaps Range SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum Unique "
        "UniqueWithCounts Where"
    ),
    "sequences with offsets, whose sizes follow from elements": (
        "DynamicLstm DynamicLstmGrad DynamicGruGrad LodReset SequenceConcat SequenceContext SequenceContextGrad "
        "SequenceConv SequenceEnumerate SequenceErase SequenceExpand SequenceExpandAs SequencePad SequencePick "
        "SequencePlace SequencePool SequencePoolGrad SequenceRepad SequenceReshape SequenceReverse SequenceScatter "
        "SequenceSlice SequenceSoftmax SequenceSoftmaxGrad SequenceTake SequenceUnpad"
    ),
    "rows of sparse gradients, which are merged next to native calls (unmerged_rows.py)": (
        "EmbeddingRows MergeRows RowsAt"
    ),
    "second derivatives of layers that are one kernel": (
        "GRUSequenceGradGrad LSTMSequenceGradGrad MaxPool3DGradGrad MaxPoolGradGrad"
    ),
    "no rule yet": (
        "CTCBeamSearch CropAndResize DrawBoundingBoxes FusionInputs FusionResults "
        "InvertPermutation IsotonicRegression LinSpace ListConcat ListScatter ListScatterAdd "
        "ListSplit MaxPoolWithArgmax Permute ResizeArea ResizeBicubic ResizeBicubicGrad ScaleAndTranslate "
        "ScaleAndTranslateGrad TensorStridedSliceUpdate UnravelIndex"
    ),
}


def test_each_operator_has_a_rule_or_a_reason() -> None:
    stated = Counter(name for names in REASONS.values() for name in names.split())
    without = set(registry.catalogue()) - set(MODULES)
    assert not {name for name, times in stated.items() if times > 1}, "stated twice"
    assert without - set(stated) == set(), "no rule, and no reason"
    assert set(stated) - without == set(), "a rule, or no operator"


def uncompiled(graph) -> list:
    """The nodes of a graph that no rule lowers, whatever its size, with their reasons."""
    _, planned, _ = partitioner._partitioner(graph)
    return planned.uncompiled()


@pytest.mark.slow
def test_the_table_of_nodes_that_leave() -> None:
    """Rows of operators with rules that leave state why: a type, a size, an attribute or a number of elements."""
    left: dict[str, Counter] = defaultdict(Counter)
    for rows in test_operators.TABLES.values():
        for row in rows:
            if not checks._traces(row):
                continue
            for single in (False, True):
                actual = test_rules_on_rows.recorded(row, single)
                for node in uncompiled(actual[0]) if actual is not None else ():
                    left[node.op][node.why] += 1
    for name, reasons in sorted(left.items()):
        print(name, sum(reasons.values()), *(f"{n} x {why}" for why, n in reasons.most_common(3)), sep="; ")
    assert all(why for reasons in left.values() for why in reasons)
    assert not any(why.startswith("no rule") for name, reasons in left.items() if name in MODULES for why in reasons)
