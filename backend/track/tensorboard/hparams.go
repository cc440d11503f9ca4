package tensorboard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/protofield"
)

// The field numbers are those of plugin_data.proto of the plugin "hparams".

// sessionStart tells the hyperparameters of a run.
func sessionStart(now time.Time, config map[string]any) value {
	var info []byte
	for _, key := range slices.Sorted(maps.Keys(config)) {
		entry := protofield.AppendBytes(protofield.AppendBytes(nil, 1, []byte(key)), 2, protoValue(config[key]))
		info = protofield.AppendBytes(info, 1, entry)
	}
	info = protofield.AppendDouble(info, 5, seconds(now))
	return hparams("_hparams_/session_start_info", 3, info)
}

// sessionEnd tells how a run ended.
func sessionEnd(now time.Time, failed bool) value {
	status := uint64(1)
	if failed {
		status = 2
	}
	info := protofield.AppendDouble(protofield.AppendVarint(nil, 1, status), 2, seconds(now))
	return hparams("_hparams_/session_end_info", 4, info)
}

// hparams returns a value with a field of HParamsPluginData. Its tensor is an empty vector of floats.
func hparams(tag string, field protofield.Number, info []byte) value {
	empty := protofield.AppendBytes(protofield.AppendVarint(nil, 1, 1), 2, protofield.AppendBytes(nil, 2, nil))
	return pluginValue(tag, "hparams", protofield.AppendBytes(protofield.AppendVarint(nil, 1, 0), field, info), empty)
}

// protoValue returns v as a google.protobuf.Value: a number, a bool, or text.
func protoValue(v any) []byte {
	switch v := v.(type) {
	case bool:
		return protofield.AppendVarint(nil, 4, protowire.EncodeBool(v))
	case int:
		return protofield.AppendDouble(nil, 2, float64(v))
	case int64:
		return protofield.AppendDouble(nil, 2, float64(v))
	case uint64:
		return protofield.AppendDouble(nil, 2, float64(v))
	case float64:
		return protofield.AppendDouble(nil, 2, v)
	}
	return protofield.AppendBytes(nil, 3, fmt.Append(nil, v))
}
