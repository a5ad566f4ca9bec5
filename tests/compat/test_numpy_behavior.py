"""Tensors after `experimental_enable_numpy_behavior`, in a process of their own: methods, operators and indexing.

Expected values and dtypes: NumPy's, of the same expressions.
"""

import subprocess
import sys

PROGRAM = """
import numpy as np
import opwright as ow

ow.experimental.numpy.experimental_enable_numpy_behavior()
EXPRESSIONS = '''
x.T x.reshape(4) x.reshape((4,1)) x.ravel() x.flatten() x.astype(np.float32) x.mean() x.sum(axis=0) x.max() x.clip(2,3)
x.transpose() x.size x.tolist() x.prod(axis=1) x.std() x.argmax(axis=1) x.any() x.repeat(2)
x+1.5 x+y x*z 2*x x/2 x//2 x%2 x**2 x@x 1.5-x y-x x==2 x[[0]] x[[1,0]] x[x>2] w[[0,2]] w[w>2] w[np.array([1,3])] w[1:3]
'''
arrays = {
    "x": np.array([[1, 2], [3, 4]], np.int32),
    "y": np.array(1.5, np.float32),
    "z": np.array(2, np.int64),
    "w": np.array([1, 2, 3, 4]),
}
tensors = {name: ow.constant(value) for name, value in arrays.items()}
for expression in EXPRESSIONS.split():
    expected, result = (np.asarray(eval(expression, {"np": np}, names)) for names in (arrays, tensors))
    assert result.dtype == expected.dtype and result.shape == expected.shape, (expression, result, expected)
    assert np.allclose(result, expected), (expression, result, expected)
traced = ow.function(lambda a: a.reshape(-1) + ow.constant(0.5))(tensors["x"])
assert traced.numpy().tolist() == [1.5, 2.5, 3.5, 4.5]
"""


def test_tensors_behave_as_arrays():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
