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

// keysOf returns the first maxKeys ranges of keys that a request names, as fields of messages are called in both APIs:
// key and range_end, or prefix. It looks at no other bytes.
func keysOf(request any) (keys []Keys) {
	if m, ok := request.(proto.Message); ok {
		collect(m.ProtoReflect(), 0, &keys)
	}
	return keys
}

func collect(m protoreflect.Message, depth int, keys *[]Keys) {
	if depth > maxDepth {
		return
	}
	fields := m.Descriptor().Fields()
	bytesOf := func(name protoreflect.Name) []byte {
		f := fields.ByName(name)
		if f == nil || f.Kind() != protoreflect.BytesKind || f.IsList() {
			return nil
		}
		return m.Get(f).Bytes()
	}
	if key, end := bytesOf("key"), bytesOf("range_end"); len(key) > 0 && len(*keys) < maxKeys {
		*keys = append(*keys, Keys{key, end})
	}
	if prefix := bytesOf("prefix"); len(prefix) > 0 && len(*keys) < maxKeys {
		end := kv.PrefixEnd(prefix)
		if end == nil {
			end = []byte{0}
		}
		*keys = append(*keys, Keys{prefix, end})
	}
	for i := range fields.Len() { // Message.Range has no order
		f := fields.Get(i)
		switch {
		case f.Kind() != protoreflect.MessageKind || f.IsMap() || !m.Has(f):
		case f.IsList():
			for list, j := m.Get(f).List(), 0; j < list.Len(); j++ {
				collect(list.Get(j).Message(), depth+1, keys)
			}
		default:
			collect(m.Get(f).Message(), depth+1, keys)
		}
	}
}
