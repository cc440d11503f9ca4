package tensorboard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The field numbers are those of plugin_data.proto of the plugin "hparams".

// sessionStart tells the hyperparameters of a run.
func sessionStart(now time.Time, config map[string]any) value {
	var info []byte
	for _, key := range slices.Sorted(maps.Keys(config)) {
		entry := appendBytes(appendBytes(nil, 1, []byte(key)), 2, protoValue(config[key]))
		info = appendBytes(info, 1, entry)
	}
	info = appendDouble(info, 5, seconds(now))
	return hparams("_hparams_/session_start_info", 3, info)
}

// sessionEnd tells how a run ended.
func sessionEnd(now time.Time, failed bool) value {
	status := uint64(1)
	if failed {
		status = 2
	}
	return hparams("_hparams_/session_end_info", 4, appendDouble(appendVarint(nil, 1, status), 2, seconds(now)))
}

// hparams returns a value with a field of HParamsPluginData. Its tensor is an empty vector of floats.
func hparams(tag string, field protowire.Number, info []byte) value {
	empty := appendBytes(appendVarint(nil, 1, 1), 2, appendBytes(nil, 2, nil))
	return pluginValue(tag, "hparams", appendBytes(appendVarint(nil, 1, 0), field, info), empty)
}

// protoValue returns v as a google.protobuf.Value: a number, a bool, or text.
func protoValue(v any) []byte {
	switch v := v.(type) {
	case bool:
		return appendVarint(nil, 4, protowire.EncodeBool(v))
	case int:
		return appendDouble(nil, 2, float64(v))
	case int64:
		return appendDouble(nil, 2, float64(v))
	case uint64:
		return appendDouble(nil, 2, float64(v))
	case float64:
		return appendDouble(nil, 2, v)
	}
	return appendBytes(nil, 3, fmt.Append(nil, v))
}
