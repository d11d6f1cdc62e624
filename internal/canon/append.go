package canon

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"
)

// Encode is on every path of a node, and a hash within a hash costs cbor's own
// encoder a call for each byte. So this is one for the types that are encoded
// here: booleans, integers, strings, bytes, and arrays, slices, pointers,
// interfaces and ",toarray" structs of such types. Cbor's is its oracle in the tests.

// appender appends the encoding of an addressable value of one type.
type appender func(b []byte, v reflect.Value) []byte

// encoder encodes values of one type. Values that are not addressable are copied to one of its copies first.
type encoder struct {
	append appender
	copies sync.Pool // of pointers to zero values
}

// Encoders of types, and buffers, are shared by all goroutines.
var (
	encoders sync.Map // of reflect.Type
	rooms    = sync.Pool{New: func() any { return new([]byte) }}
)

// encoderOf is looked up anew for every slice and pointer, since a type may
// contain itself.
func encoderOf(t reflect.Type) *encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(*encoder)
	}
	e := &encoder{append: newAppender(t)}
	e.copies.New = func() any { return reflect.New(t).Interface() }
	encoders.Store(t, e)
	return e
}

// The major types and simple values of RFC 8949, sections 3.1 and 3.3.
const (
	MajorUint     = 0 << 5
	MajorNegative = 1 << 5
	MajorBytes    = 2 << 5
	MajorText     = 3 << 5
	MajorArray    = 4 << 5
	MajorMap      = 5 << 5

	simpleFalse = 0xf4
	simpleTrue  = 0xf5
	simpleNull  = 0xf6
)

var (
	binaryMarshaler = reflect.TypeFor[encoding.BinaryMarshaler]()
	bytesType       = reflect.TypeFor[Bytes]()
)

func newAppender(t reflect.Type) appender {
	if t != bytesType && reflect.PointerTo(t).Implements(binaryMarshaler) {
		panic(fmt.Sprintf("canon: %v has an encoding of its own", t))
	}
	switch t.Kind() {
	case reflect.Bool:
		return appendBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return appendInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) []byte { return AppendHead(b, MajorUint, v.Uint()) }
	case reflect.String:
		major := byte(MajorText)
		if t == bytesType {
			major = MajorBytes
		}
		return func(b []byte, v reflect.Value) []byte {
			return append(AppendHead(b, major, uint64(v.Len())), v.String()...)
		}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return func(b []byte, v reflect.Value) []byte {
				return append(AppendHead(b, MajorBytes, uint64(v.Len())), v.Bytes()...)
			}
		}
		return appendElements
	case reflect.Pointer:
		return appendPointer
	case reflect.Interface:
		return func(b []byte, v reflect.Value) []byte { return appendValue(b, v.Elem()) }
	case reflect.Struct:
		return newStructAppender(t)
	}
	panic(fmt.Sprintf("canon: %v cannot be encoded", t))
}

// AppendHead appends the head of an item: its major type, and its argument in the shortest form.
func AppendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendBool(b []byte, v reflect.Value) []byte {
	if v.Bool() {
		return append(b, simpleTrue)
	}
	return append(b, simpleFalse)
}

func appendInt(b []byte, v reflect.Value) []byte {
	if n := v.Int(); n < 0 {
		return AppendHead(b, MajorNegative, uint64(^n)) // -1 - n
	}
	return AppendHead(b, MajorUint, uint64(v.Int()))
}

func appendElements(b []byte, v reflect.Value) []byte {
	n := v.Len()
	b = AppendHead(b, MajorArray, uint64(n))
	appendElement := encoderOf(v.Type().Elem()).append
	for i := range n {
		b = appendElement(b, v.Index(i))
	}
	return b
}

// appendValue takes values that are not addressable as well.
func appendValue(b []byte, v reflect.Value) []byte {
	if v.Kind() == reflect.Pointer {
		return appendPointer(b, v)
	}
	e := encoderOf(v.Type())
	free := e.copies.Get()
	defer e.copies.Put(free)
	p := reflect.ValueOf(free)
	defer p.Elem().SetZero() // it must not keep alive what the value refers to
	p.Elem().Set(v)
	return e.append(b, p.Elem())
}

func appendPointer(b []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(b, simpleNull)
	}
	return encoderOf(v.Type().Elem()).append(b, v.Elem())
}

// newStructAppender takes structs that are arrays of their fields: those with a
// field "_" with such a tag.
func newStructAppender(t reflect.Type) appender {
	mark, _ := t.FieldByName("_")
	if mark.Tag.Get("cbor") != ",toarray" {
		panic(fmt.Sprintf("canon: %v is not marked as an array", t))
	}
	type field struct {
		index  int
		append appender
	}
	var fields []field
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous || f.IsExported() && f.Tag.Get("cbor") != "":
			panic(fmt.Sprintf("canon: %v has a field of an unknown kind, %s", t, f.Name))
		case f.IsExported():
			fields = append(fields, field{i, encoderOf(f.Type).append})
		}
	}
	return func(b []byte, v reflect.Value) []byte {
		b = AppendHead(b, MajorArray, uint64(len(fields)))
		for _, f := range fields {
			b = f.append(b, v.Field(f.index))
		}
		return b
	}
}
