package runs

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// exactRow keeps what columns of strings and lists cannot: strings that are not UTF-8, which readers of Parquet refuse,
// and lists that are empty but not nil. Both are named by their ordinal among the strings and lists of the row, counted
// depth first in the order of the columns.
type exactRow struct {
	EmptyLists []int32    `parquet:"empty_lists,list"`
	Texts      []exactTxt `parquet:"texts,list"`
}

type exactTxt struct {
	Ordinal int32  `parquet:"ordinal"`
	Bytes   []byte `parquet:"bytes"`
}

// makeExact fills row.Exact and replaces the invalid bytes of strings by U+FFFD.
func makeExact(row *trajectoryRow) {
	var e exactRow
	visitCells(reflect.ValueOf(row), func(ordinal int32, cell reflect.Value) {
		switch {
		case cell.Kind() == reflect.Slice && cell.Len() == 0 && !cell.IsNil():
			e.EmptyLists = append(e.EmptyLists, ordinal)
		case cell.Kind() == reflect.String && !utf8.ValidString(cell.String()):
			e.Texts = append(e.Texts, exactTxt{ordinal, []byte(cell.String())})
			cell.SetString(strings.ToValidUTF8(cell.String(), "\uFFFD"))
		}
	})
	if len(e.EmptyLists)+len(e.Texts) > 0 {
		row.Exact = &e
	}
}

// applyExact is the inverse of makeExact.
func applyExact(row *trajectoryRow) error {
	e := exactRow{}
	if row.Exact != nil {
		e, row.Exact = *row.Exact, nil
	}
	visitCells(reflect.ValueOf(row), func(ordinal int32, cell reflect.Value) {
		switch {
		case cell.Kind() == reflect.String && len(e.Texts) > 0 && e.Texts[0].Ordinal == ordinal:
			cell.SetString(string(e.Texts[0].Bytes))
			e.Texts = e.Texts[1:]
		case cell.Kind() != reflect.Slice || cell.Len() > 0:
		case len(e.EmptyLists) > 0 && e.EmptyLists[0] == ordinal:
			cell.Set(reflect.MakeSlice(cell.Type(), 0, 0))
			e.EmptyLists = e.EmptyLists[1:]
		default:
			cell.SetZero()
		}
	})
	if len(e.EmptyLists)+len(e.Texts) > 0 {
		return fmt.Errorf("column exact describes %d cells that do not exist", len(e.EmptyLists)+len(e.Texts))
	}
	return nil
}

// visitCells calls visit for each string and each slice that v points to, counting them.
func visitCells(v reflect.Value, visit func(ordinal int32, cell reflect.Value)) {
	var ordinal int32
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if v.Kind() == reflect.String || v.Kind() == reflect.Slice {
			visit(ordinal, v)
			ordinal++
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			if kind := v.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.String {
				return // numbers have no cells
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(v)
}
