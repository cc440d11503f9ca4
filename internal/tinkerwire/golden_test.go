package tinkerwire

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// pythonRequest is what protobuf 7 makes of example with the descriptors of the Python package tinker 0.38.0:
// ForwardBackwardRequest.SerializeToString(deterministic=True), the fields set as in example, the option in both maps.
const pythonRequest = "0a09733a747261696e3a3010071a670a100a0e0a0c01000000020000000300000012210a0a616476" +
	"616e746167657312130a0c000000000000a03f0000e0c0180122010312300a0d7461726765745f74" +
	"6f6b656e73121f0a1802000000000000000300000000000000ffffffffffffffff18022201031ab0" +
	"010a0c0a0a0a08090000000900000012490a0d7461726765745f746f6b656e7312380a3001000000" +
	"00000000020000000000000003000000000000000400000000000000050000000000000006000000" +
	"0000000018022202020312550a0777656967687473124a12420a0c0000c03f000000c0cdcccc3d12" +
	"180000000000000000020000000000000003000000000000001a1800000000000000000200000000" +
	"0000000100000000000000180122020203220370706f2a1d0a12636c69705f6c6f775f7468726573" +
	"686f6c6411000000000000e03f3a1f0a12636c69705f6c6f775f7468726573686f6c641209090000" +
	"00000000e03f"

func TestForwardRequest_Python(t *testing.T) {
	message, err := hex.DecodeString(pythonRequest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseForwardRequest(message, many)
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("%v: %+v, want %+v", err, got, example())
	}
	if ours := hex.EncodeToString(example().Proto()); len(ours) != len(pythonRequest) {
		t.Errorf("ours has other fields:\n%s\n%s", ours, pythonRequest)
	}
}
