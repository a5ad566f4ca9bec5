"""NumPy's functions of tensors: `tf.experimental.numpy`."""

import numpy as np
from tutorial_programs import program

ELEMENTS = """
abs(i) absolute(f) add(i,2) add(i,1.5) add(b,b) add(f,1) add(h,f) add(1,2) add(u,i8) angle(c) arccos(q) arccosh(f+2)
arcsin(q) arcsinh(i) arctan(f) arctan2(f,2) arctanh(q) around(f,1) bitwise_and(i,3) bitwise_not(i) bitwise_or(i,i)
bitwise_xor(i,5) cbrt(i) ceil(f) ceil(i) clip(f,-1,1) clip(i,1.5,None) conj(c) conjugate(c) cos(i) cosh(f) deg2rad(i)
divide(i,2) divide(f,i) divide(i8,i8) equal(i,f) exp(i) exp2(f) expm1(f) fabs(i) fix(f) float_power(i,2) floor(f)
floor_divide(i,2) floor_divide(f,2) gcd(i,4) greater(i,2) greater_equal(f,i) heaviside(f,.5) hypot(i,f) hypot(3,4)
imag(c) isclose(f,f+1e-9) iscomplex(c) isfinite(f) isinf(f) isnan(i) isneginf(f) isposinf(f) isreal(c) lcm(i,4)
less(i,f) less_equal(i,2) log(p) log10(p) log1p(p) log2(p) logaddexp(f,i) logical_and(i,b) logical_not(i)
logical_or(f,b) logical_xor(b,b) maximum(i,f) minimum(i,2) mod(i,3) mod(f,1.5) multiply(i,f) multiply(b,b)
multiply(h,2) negative(f) nextafter(f,f+1) not_equal(i,2) positive(f) power(i,2) power(f,2.) rad2deg(f) real(c)
remainder(f,2) sign(f) sign(i) signbit(f) sin(i8) sinc(f) sinh(f) sqrt(p) square(i) subtract(i,f) subtract(i,1) tan(f)
tanh(i) true_divide(i,i+7) reciprocal(f)
"""
REDUCED = """
sum(i) sum(i,axis=0) sum(i8) sum(b) sum(f,axis=1,keepdims=True) sum(i,dtype=t.float32) prod(i,axis=1) prod(f) mean(i)
mean(f,axis=0) mean(b) max(i,axis=1) min(f) amax(i) amin(i,axis=0,keepdims=True) any(b) all(b,axis=1) var(i)
var(f,axis=0) std(i) std(f,axis=1) average(f) average(f,axis=1,weights=[1.,2.,3.]) cumsum(i) cumsum(f,axis=1)
cumprod(i,axis=0) ptp(f,axis=0) nansum(n) nanmean(n) nanprod(n) argmax(f) argmax(f,axis=1) argmin(i,axis=0) argsort(f)
sort(f,axis=0) count_nonzero(i) count_nonzero(b,axis=0) trace(s) trace(s,offset=1) allclose(f,f) allclose(f,f+1)
array_equal(i,i) array_equal(i,f) diff(f) diff(i,axis=0)
"""
SHAPED = """
append(i,i) append(i,f,axis=0) arange(5) arange(1,4) arange(0.,1.,.25) arange(3,dtype=t.float32) array(3) array(2.5)
array([1,2]) array([[1.,2.]]) array([True]) array([i[0],i[1]]) array([1,2.5]) array(f,dtype=t.float64)
array(1,ndmin=2) asarray([1]) asanyarray(f) ascontiguousarray(i) atleast_1d(3.) atleast_2d([1,2]) atleast_3d(i)
broadcast_arrays(i,[[1],[2]]) broadcast_to([1,2,3],(2,3)) compress([True,False,True],i,axis=1)
concatenate([i,f],axis=1) copy(i) cross([1.,2.,3.],[3.,4.,5.]) diag([1,2]) diag(s) diag_indices(2) diagflat([1,2])
diagonal(s) dot(i,s) dot([1.,2.],[3,4]) dsplit(r,2) dstack([[1,2],[3,4]]) einsum('ij,jk->ik',i,s) eye(2)
eye(2,3,k=1,dtype=t.int32) expand_dims(i,0) flatten(i) flip(i) fliplr(i) flipud(i) full((2,),3) full((2,),1.5)
full_like(i,2) geomspace(1.,8.,4) hsplit(r,2) hstack([i,i]) identity(2) inner([1.,2.],[3.,4.]) ix_([0,1],[2])
kron([1,2],[1,1]) linspace(0,1,3) linspace(0.,1.,4,endpoint=False) logspace(0.,2.,3) matmul(i,s) meshgrid([1,2],[3,4])
moveaxis(r,0,-1) ndim(i) nonzero(i) ones((2,)) ones((2,),dtype=t.int32) ones_like(i) ones_like(f,dtype=t.int8)
outer([1,2],[3,4]) pad(i,[[1,0],[0,1]],'constant',constant_values=9) polyval([1,2,3],2.) ravel(i) repeat(i,2,axis=1)
reshape(i,(3,2)) roll(i,1,axis=1) rot90(i) select([i>2,i>0],[i,-i],7) shape(i) size(i) split(i,3,axis=1)
squeeze([[[1]]]) stack([i,i]) swapaxes(r,0,2) take(i,[0,5]) take(i,[1],axis=1) take_along_axis(f,[[0],[1]],axis=1)
tensordot(i,s,axes=1) tile(i,(1,2)) transpose(i) transpose(r,(2,0,1)) tri(3) tri(2,3,k=1,dtype=t.int32) tril(s)
triu(s,k=1) vander([1,2,3]) vdot([1.,2.],[3.,4.]) vsplit(i,2) vstack([i,i]) where(i>1) where(i>1,i,0) where(i>1,f,0)
zeros((2,2)) zeros_like(f) divmod(i,2) empty((0,)) iscomplexobj(c) isrealobj(f) isscalar(3) isscalar(i)
"""


def results(tf, expressions):
    t = tf.experimental.numpy
    if tf.__name__ == "tensorflow":  # some of its functions call methods of tensors that this adds
        t.experimental_enable_numpy_behavior()
    names = {
        "t": t,
        "i": tf.constant([[1, 2, 3], [4, 0, -6]]),
        "i8": tf.constant([1, 2, 3], tf.int8),
        "u": tf.constant([1, 2, 3], tf.uint8),
        "f": tf.constant([[0.5, -1.5, 2.25], [3.0, 0.0, -0.125]]),
        "h": tf.constant([1.5, 2.0, 3.0], tf.float16),
        "b": tf.constant([[True, False, True], [True, True, True]]),
        "c": tf.constant([1 + 2j, 3 + 0j], tf.complex64),
        "q": tf.constant([0.5, -0.25]),
        "p": tf.constant([1, 2, 8]),
        "n": tf.constant([[1.0, np.nan], [3.0, 4.0]]),
        "s": tf.constant([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        "r": tf.constant(np.arange(16).reshape(2, 4, 2)),
    }
    names |= {k: getattr(t, k) for k in dir(t) if not k.startswith("_") and k not in names and k != "e"}
    values = {x: eval(x, names) for x in expressions.split()}
    complex_ones = {k: v for k, v in values.items() if hasattr(v, "dtype") and "complex" in str(v.dtype)}
    return values | {k: [str(v.dtype), t.real(v), t.imag(v)] for k, v in complex_ones.items()}


@program
def of_elements(tf):
    return results(tf, ELEMENTS)


@program
def of_reductions(tf):
    return results(tf, REDUCED)


@program
def of_shapes(tf):
    return results(tf, SHAPED)


@program
def of_types(tf):
    t = tf.experimental.numpy
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape() as tape:
        y = t.sum(t.power(t.exp(x + 0.0), 2) * t.array([1.0, 2.0], dtype=t.float32))
    traced = tf.function(lambda v: t.concatenate([t.ravel(v), t.linspace(0.0, 1.0, 2)]))
    types = [t.result_type(t.int32, t.float32), t.promote_types(t.int8, t.uint8), t.result_type(1, 2.0)]
    randoms = [t.random.rand(2, 3), t.random.randn(2), t.random.randint(0, 5, (4,)), t.random.uniform(size=[2])]
    return {
        "gradient": tape.gradient(y, x),
        "traced": traced(tf.ones([2, 2])),
        "types": [getattr(x, "name", None) or np.dtype(x).name for x in types],
        "random": [[x.dtype.name, list(x.shape)] for x in randoms],
    }


@program
def solved_by_iteration(tf):
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 5.0]])
    hints = {"is_self_adjoint": True, "is_positive_definite": True}
    operator = tf.linalg.LinearOperatorFullMatrix(np.stack([matrix, 2 * matrix]), **hints)
    inverse = tf.linalg.LinearOperatorDiag(1 / np.diag(matrix), **hints)
    solve = tf.linalg.experimental.conjugate_gradient
    rows = tf.constant([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]], tf.float64)
    begun = solve(operator, rows, inverse, x=tf.ones_like(rows), max_iter=2)
    traced = tf.function(lambda b: solve(operator, b))(rows)
    return [*traced[:2], *begun]
