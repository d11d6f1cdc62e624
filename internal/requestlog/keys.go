package requestlog

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/aweigh/aweigh/kv"
)

const (
	maxKeys  = 64      // ranges in one line
	maxDepth = 8       // of messages within a request
	maxBytes = 1 << 10 // of a key in a line
)

// KeysOf returns the keys that a request names, and whether it reads: as fields of messages are called in both APIs,
// key and range_end, or prefix. It looks at no other bytes.
func KeysOf(request any) (keys []Keys, reads bool) {
	m, ok := request.(proto.Message)
	if !ok {
		return nil, false
	}
	collect(m.ProtoReflect(), 0, &keys, &reads)
	return keys, reads
}

func collect(m protoreflect.Message, depth int, keys *[]Keys, reads *bool) {
	if depth > maxDepth || len(*keys) >= maxKeys {
		return
	}
	if m.Descriptor().Name() == "RangeRequest" {
		*reads = true
	}
	fields := m.Descriptor().Fields()
	bytesOf := func(name protoreflect.Name) []byte {
		f := fields.ByName(name)
		if f == nil || f.Kind() != protoreflect.BytesKind || f.IsList() {
			return nil
		}
		return m.Get(f).Bytes()
	}
	if key, end := bytesOf("key"), bytesOf("range_end"); len(key) > 0 {
		*keys = append(*keys, Keys{key, end})
	}
	if prefix := bytesOf("prefix"); len(prefix) > 0 {
		end := kv.PrefixEnd(prefix)
		if end == nil {
			end = []byte{0}
		}
		*keys = append(*keys, Keys{prefix, end})
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				collect(v.List().Get(i).Message(), depth+1, keys, reads)
			}
		default:
			collect(v.Message(), depth+1, keys, reads)
		}
		return len(*keys) < maxKeys
	})
}
