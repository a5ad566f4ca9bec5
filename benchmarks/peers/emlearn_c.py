"""C of emlearn for a dense network, as `MLPClassifier` of scikit-learn trains it on its handwritten digits.

Run by a Python that has emlearn and scikit-learn: `emlearn_c.py FOLDER`. FOLDER gets digits.h and, for others, the
weights and an image with its scores (digits.npz); the folder of emlearn's headers is printed.
"""

import sys
from pathlib import Path

import emlearn
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier


def main():
    folder = Path(sys.argv[1])
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    np.seterr(all="ignore")
    model = MLPClassifier((32, 16), max_iter=200, random_state=1).fit(images[:1200], digits[:1200])
    emlearn.convert(model, dtype="float", method="inline").save(file=str(folder / "digits.h"), name="digits")
    layers = {f"w{i}": w.astype(np.float32) for i, w in enumerate(model.coefs_)}
    layers |= {f"b{i}": b.astype(np.float32) for i, b in enumerate(model.intercepts_)}
    image = images[1200]
    np.savez(folder / "digits.npz", image=image, scores=model.predict_proba(image[None])[0], **layers)
    print(emlearn.includedir)


if __name__ == "__main__":
    main()
