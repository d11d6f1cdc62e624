// Package vary changes values field by field, for tests that demand that every field of a
// type has an effect.
package vary

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Each gives visit a copy of a value for each of its fields, at whatever depth, in which that
// field alone has another value, and the field's path. The value must be filled: a nil
// pointer or an empty slice of structs on the way is a field that cannot be tried, and Each
// panics. Paths that end in one of those of skip are passed over.
func Each[T any](value T, skip []string, visit func(path string, changed T)) {
	for _, path := range paths(reflect.ValueOf(value), "") {
		left := false
		for _, s := range skip {
			left = left || strings.HasSuffix(path, s)
		}
		if left {
			continue
		}
		changed := Clone(value)
		found := false
		walk(reflect.ValueOf(&changed).Elem(), "", func(at string, v reflect.Value) {
			if at == path {
				found = true
				change(v)
			}
		})
		if !found {
			panic("vary: no field " + path)
		}
		visit(path, changed)
	}
}

func paths(v reflect.Value, at string) (all []string) {
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	walk(p, at, func(path string, _ reflect.Value) { all = append(all, path) })
	return all
}

// walk visits the fields that hold values of their own; within are the types on the way.
func walk(v reflect.Value, at string, visit func(string, reflect.Value), within ...reflect.Type) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && slices.Contains(within, v.Type().Elem()) { // a type that contains itself ends somewhere
			return
		}
		if v.IsNil() {
			visit(at, v)
			return
		}
		walk(v.Elem(), at, visit, within...)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				walk(v.Field(i), at+"."+f.Name, visit, append(slices.Clone(within), v.Type())...)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			visit(at, v)
			return
		}
		if v.Len() == 0 {
			visit(at, v)
		}
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", at, i), visit, within...)
		}
	default:
		visit(at, v)
	}
}

// change gives a field another value of its type: of an enumeration 1 in place of 2, and
// of all others 2 in place of 1.
func change(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.Uint8 && v.Uint() == 2:
		v.SetUint(1)
	case v.Kind() == reflect.Uint8:
		v.SetUint(2)
	case v.CanInt():
		v.SetInt(v.Int() + 1_000_001)
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		panic(fmt.Sprintf("vary: a field of type %v is empty", v.Type()))
	case v.Kind() == reflect.Slice:
		b := append([]byte(nil), v.Bytes()...)
		if len(b) == 0 {
			b = append(b, 0)
		}
		b[0] ^= 1
		v.SetBytes(b)
	case v.Kind() == reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	default:
		panic(fmt.Sprintf("vary: a field of type %v", v.Type()))
	}
}

// Clone is a deep copy of a value of exported fields.
func Clone[T any](value T) T {
	return clone(reflect.ValueOf(&value).Elem()).Interface().(T)
}

func clone(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(clone(v.Elem()))
			out.Set(p)
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(clone(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(clone(v.Field(i)))
			}
		}
	}
	return out
}
