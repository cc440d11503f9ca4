"""GGUF files with the same numbers in float32, on which llama.cpp does not round activations."""

import gguf
from gguf.quants import dequantize


def widened(path, out):
    """Writes a GGUF file with the same numbers in float32."""
    reader = gguf.GGUFReader(path)
    w = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key == "general.architecture" or key.startswith("GGUF."):
            continue
        element = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        w.add_key_value(key, field.contents(), field.types[0], sub_type=element)
    for t in reader.tensors:
        numbers = dequantize(t.data, t.tensor_type).astype("float32")
        w.add_tensor(t.name, numbers.reshape([int(n) for n in reversed(t.shape)]))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
