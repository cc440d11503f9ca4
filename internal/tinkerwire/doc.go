// Package tinkerwire has the messages of the Tinker API, for its clients and servers. It knows both dialects: JSON,
// of the SDKs up to 0.24, and protobuf (package tinker_public), which newer ones use for training data and results.
// Field numbers and names are facts of the protocol; unknown fields are skipped.
//
// Arrays of bytes in protobuf are little-endian, in C order.
package tinkerwire

// ProtoType is the content type of the protobuf dialect.
const ProtoType = "application/x-protobuf"

// JSONType is the content type of the JSON dialect.
const JSONType = "application/json"
