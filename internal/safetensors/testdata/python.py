# Writes python.safetensors with the reference implementation, or checks a file that Write wrote:
#
#	python -m venv /tmp/venv && /tmp/venv/bin/pip install safetensors==0.8.0 numpy==2.4.6
#	/tmp/venv/bin/python testdata/python.py write testdata/python.safetensors
#	/tmp/venv/bin/python testdata/python.py check testdata/go.safetensors
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

verb, path = sys.argv[1:]
if verb == "write":
    save_file(
        {
            "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 3,
            "half": np.array([1, -0.0, 6e-8, 65504, np.inf, np.nan], dtype=np.float16),
            "scalar": np.array(7, dtype=np.int64),
            "none": np.zeros((0, 4), dtype=np.float64),
            "mask": np.array([True, False, True]),
            'żółw "q"': np.array([255], dtype=np.uint8),
        },
        path,
        metadata={"format": "np", "note": 'a "b" <c>'},
    )
else:
    with safe_open(path, framework="np") as f:
        assert f.metadata() == {"format": "pt", "note": 'a "b" <c> żółw'}, f.metadata()
        assert set(f.keys()) == {"bytes", "weight", "none", 'żółw "q"'}, f.keys()
        assert f.get_tensor("bytes").tolist() == [1, 2, 3]
        want = np.array([[0, -0.0, 1e-45], [np.inf, 3.4028235e38, 1 / 3]], dtype=np.float32)
        assert f.get_tensor("weight").tobytes() == want.tobytes()
        assert f.get_tensor("weight").shape == (2, 3)
        assert f.get_tensor("none").shape == (0, 4)
        assert f.get_tensor('żółw "q"').shape == () and f.get_tensor('żółw "q"') == -5
        print("ok")
