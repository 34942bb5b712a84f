package bicep

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Resource is a resource that a deployment would create.
type Resource struct {
	// File and Symbol are the place of its declaration.
	File, Symbol string
	// Type is the type without the version, for example Microsoft.App/containerApps.
	Type, Version string
	// ID is a stand-in for the resource id: the names of its parents and its own.
	ID string
	// Body is the request body, without parent, scope and dependsOn.
	Body map[string]any
	// Scope is the id of the resource that it extends, for example of a diagnostic setting,
	// and ScopeType the type of that resource.
	Scope, ScopeType string
}

// Standins maps a resource type to the run-time values of its properties. In a text, {name} is
// the name of the resource.
type Standins map[string]map[string]any

type deployment struct {
	files     map[string]*File
	environ   map[string]string
	standins  Standins
	resources []Resource
}

// Deploy evaluates a parameter file (.bicepparam), the file that it names and all
// modules, in files by path, and returns the resources that would be created. It evaluates
// every resource and output, so that errors in unused ones are found too. environ has the
// variables for readEnvironmentVariable.
func Deploy(files map[string]*File, parameters string, environ map[string]string, standins Standins) ([]Resource, error) {
	d := &deployment{files: files, environ: environ, standins: standins}
	file, err := d.find(parameters)
	if err != nil {
		return nil, err
	}
	params := &scope{deployment: d, file: file, known: map[string]any{}, busy: map[string]bool{}}
	arguments := map[string]any{}
	for _, p := range file.All("param") {
		if arguments[p.Name], err = params.value(p.Value); err != nil {
			return nil, err
		}
	}
	main, err := d.open(path.Join(path.Dir(parameters), file.Using), arguments, Pos{File: parameters, Line: 1, Col: 1})
	if err != nil {
		return nil, err
	}
	if err := main.deploy(); err != nil {
		return nil, err
	}
	return d.resources, nil
}

func (d *deployment) find(name string) (*File, error) {
	if file, ok := d.files[name]; ok {
		return file, nil
	}
	return nil, fmt.Errorf("there is no file %s", name)
}

// open starts the evaluation of a file. The arguments must match its parameters.
func (d *deployment) open(name string, arguments map[string]any, caller Pos) (*scope, error) {
	file, err := d.find(name)
	if err != nil {
		return nil, err
	}
	fault := func(format string, args ...any) error {
		return &SyntaxError{Pos: caller, Problem: fmt.Sprintf(format, args...)}
	}
	for given, v := range arguments {
		p := file.Find(given)
		switch {
		case p == nil || p.Keyword != "param":
			return nil, fault("%s has no parameter %s", name, given)
		case !fits(p.Type, v):
			return nil, fault("parameter %s of %s is %T, not %s", given, name, v, p.Type)
		}
	}
	for _, p := range file.All("param") {
		if _, ok := arguments[p.Name]; !ok && p.Value == nil {
			return nil, fault("parameter %s of %s is missing", p.Name, name)
		}
	}
	return &scope{deployment: d, file: file, arguments: arguments, known: map[string]any{}, busy: map[string]bool{}, ids: map[string]bool{}}, nil
}

// deploy evaluates all declarations of the file.
func (s *scope) deploy() error {
	for _, decl := range s.file.Declarations {
		if decl.Keyword == "output" {
			continue
		}
		if decl.Loop == nil { // the condition of a loop is that of each of its items
			if created, err := s.created(decl); err != nil || !created {
				if err != nil {
					return err
				}
				continue
			}
		}
		if _, err := s.symbol(&Node{Kind: Ident, Text: decl.Name, Pos: decl.Pos}); err != nil {
			return err
		}
		if decl.Keyword == "resource" && !decl.Existing {
			if _, err := s.repeated(decl, s.create); err != nil {
				return err
			}
		}
	}
	_, err := s.outputs()
	return err
}

// created evaluates the condition of a declaration. That of an existing resource does not matter.
func (s *scope) created(d *Declaration) (bool, error) {
	if d.Condition == nil || d.Existing {
		return true, nil
	}
	v, err := s.value(d.Condition)
	created, ok := v.(bool)
	if err == nil && !ok {
		err = &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("the condition of %s is %T", d.Name, v)}
	}
	return created, err
}

// body evaluates the properties of a declaration, except those in without.
func (s *scope) body(d *Declaration, without ...string) (map[string]any, error) {
	o := &Node{Kind: Object, Pos: d.Value.Pos}
	for _, property := range d.Value.Kids {
		if key, _ := property.Kids[0].Literal(); !slices.Contains(without, key) {
			o.Kids = append(o.Kids, property)
		}
	}
	v, err := s.value(o)
	body, _ := v.(map[string]any)
	return body, err
}

func (d *Declaration) property(name string) *Node {
	for _, property := range d.Value.Kids {
		if key, _ := property.Kids[0].Literal(); key == name {
			return property.Kids[1]
		}
	}
	return nil
}

// reference evaluates name and id of a resource, without its properties.
func (s *scope) reference(d *Declaration) (any, error) {
	kind, _, _ := strings.Cut(d.Target, "@")
	if d.Value.Kind != Object || d.property("name") == nil {
		return nil, &SyntaxError{Pos: d.Pos, Problem: d.Name + " has no name"}
	}
	v, err := s.value(d.property("name"))
	if err != nil {
		return nil, err
	}
	name, ok := v.(string)
	if !ok {
		return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("the name of %s is %T", d.Name, v)}
	}
	id := "/" + kind + "/" + name
	if parent := d.property("parent"); parent != nil {
		v, err := s.value(parent)
		if err != nil {
			return nil, err
		}
		of, ok := v.(resourceRef)
		if !ok || kind != of.kind+"/"+path.Base(kind) {
			return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("%s (%s) cannot be a child of what it names as parent", d.Name, kind)}
		}
		id = of.id + "/" + path.Base(kind) + "/" + name
	}
	return resourceRef{id: id, name: name, kind: kind, declaration: d}, nil
}

func (s *scope) create(d *Declaration) (any, error) {
	body, err := s.body(d, "parent", "scope", "dependsOn")
	if err != nil {
		return nil, err
	}
	self, err := s.reference(d)
	if err != nil {
		return nil, err
	}
	r := Resource{File: s.file.Name, Symbol: d.Name, ID: self.(resourceRef).id, Body: body}
	r.Type, r.Version, _ = strings.Cut(d.Target, "@")
	if at := d.property("scope"); at != nil {
		v, err := s.value(at)
		if err != nil {
			return nil, err
		}
		of, ok := v.(resourceRef)
		if !ok {
			return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("the scope of %s is %T", d.Name, v)}
		}
		r.Scope, r.ScopeType = of.id, of.kind
	}
	if s.ids[r.Scope+r.ID] { // Azure refuses such a template
		return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("%s is defined twice", r.ID)}
	}
	s.ids[r.Scope+r.ID] = true
	s.deployment.resources = append(s.deployment.resources, r)
	return nil, nil
}

// module evaluates a module with its arguments.
func (s *scope) module(d *Declaration) (any, error) {
	if created, err := s.created(d); err != nil || !created {
		return nil, cmp.Or(err, error(&SyntaxError{Pos: d.Pos, Problem: d.Name + " is used and not created"}))
	}
	body, err := s.body(d, "dependsOn", "scope")
	if err != nil {
		return nil, err
	}
	arguments, _ := body["params"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(body)) {
		if key != "name" && key != "params" {
			return nil, &SyntaxError{Pos: d.Pos, Problem: fmt.Sprintf("module %s has no %s", d.Name, key)}
		}
	}
	inner, err := s.deployment.open(path.Join(path.Dir(s.file.Name), d.Target), arguments, d.Pos)
	if err != nil {
		return nil, err
	}
	return moduleRef{inner}, inner.deploy()
}
