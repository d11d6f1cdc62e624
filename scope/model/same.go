package model

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// Same reports whether two outcomes are one.
func Same(a, b scope.Outcome) bool { return same(a, b) }

func sameKv(a, b *scope.KeyValue) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision &&
		a.Sub == b.Sub && a.Version == b.Version && a.Lease == b.Lease && a.UID == b.UID && a.Entry == b.Entry
}

func sameEvent(a, b *scope.Event) bool {
	return a.Class == b.Class && sameKv(&a.Kv, &b.Kv) && (a.Prev == nil) == (b.Prev == nil) && (a.Prev == nil || sameKv(a.Prev, b.Prev))
}

func sameRange(a, b *scope.RangeResult) bool {
	return a.More == b.More && a.Count == b.Count && a.Revision == b.Revision &&
		slices.EqualFunc(a.Kvs, b.Kvs, func(a, b scope.KeyValue) bool { return sameKv(&a, &b) })
}

// same compares content; nil is the same as empty.
func same(a, b any) bool { return equal(reflect.ValueOf(a), reflect.ValueOf(b)) }

func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	}
	return a.Equal(b)
}
