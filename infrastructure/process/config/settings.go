package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
)

// Source is the origin of a value.
type Source string

// The sources of a value.
const (
	SourceEnv     Source = "environment" // set by the variable
	SourceDefault Source = "default"     // the documented default
	SourceDerived Source = "derived"     // computed from other values or the host
	SourceFile    Source = "file"        // read from the file that the variable with the suffix _FILE names
	SourceUnset   Source = "unset"       // no value and none needed
)

// Setting is one effective value, ready to be shown.
type Setting struct {
	Name   string // of the variable
	Value  string // a secret is masked
	Source Source
	// Warning is a risk that does not keep the process from starting. It completes the sentence that
	// begins with the variable.
	Warning string
	Secret  bool // Value is masked
}

// settings keeps the effective values in the order of the struct's fields.
type settings []Setting

// Settings lists every value with its source, secrets masked.
func (s settings) Settings() []Setting { return slices.Clone(s) }

// Warnings lists the variables with a warning.
func (s settings) Warnings() []Setting {
	return slices.DeleteFunc(slices.Clone(s), func(one Setting) bool { return one.Warning == "" })
}

func (s settings) warn(name, text string) {
	for i := range s {
		if s[i].Name == name {
			s[i].Warning = text
		}
	}
}

func (s *settings) record(v Variable, field reflect.Value, set bool) {
	setting := Setting{Name: v.Name, Value: fmt.Sprint(field.Interface()), Source: SourceUnset, Secret: v.Secret}
	switch {
	case set:
		setting.Source = SourceEnv
	case v.Default != "":
		setting.Source = SourceDefault
	default:
		setting.Value = ""
	}
	*s = append(*s, setting)
}

// given reports whether the environment sets the variable.
func (s settings) given(name string) bool {
	return slices.ContainsFunc(s, func(one Setting) bool { return one.Name == name && one.Source == SourceEnv })
}

func (s settings) derive(name, value string) {
	for i := range s {
		if s[i].Name == name {
			s[i].Value, s[i].Source = value, SourceDerived
		}
	}
}

// LogValue shows the values that were set, masked where secret.
func (s settings) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, one := range s {
		if one.Source != SourceDefault && one.Source != SourceUnset {
			attrs = append(attrs, slog.String(one.Name, one.Value))
		}
	}
	return slog.GroupValue(attrs...)
}
