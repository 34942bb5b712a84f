package bicep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// call evaluates the functions of the dialect. Functions of Azure return stand-ins.
func (s *scope) call(n *Node) (any, error) {
	if n.Kids[0].Kind != Ident {
		return nil, s.errorf(n, "methods are not evaluated")
	}
	args, err := s.values(n.Kids[1:])
	if err != nil {
		return nil, err
	}
	name := n.Kids[0].Text
	switch name {
	case "environment":
		return map[string]any{"authentication": map[string]any{"loginEndpoint": "https://login.microsoftonline.com/"}}, nil
	case "tenant":
		return map[string]any{"tenantId": "11111111-1111-1111-1111-111111111111"}, nil
	case "subscription":
		return map[string]any{"id": "/subscriptions/0"}, nil
	case "subscriptionResourceId", "guid", "uniqueString":
		return s.identify(n, name, args)
	case "empty":
		switch v := only(args).(type) {
		case string:
			return v == "", nil
		case []any:
			return len(v) == 0, nil
		case map[string]any:
			return len(v) == 0, nil
		}
	case "concat":
		var joined []any
		for _, arg := range args {
			list, ok := arg.([]any)
			if !ok {
				return nil, s.errorf(n, "concat of %T", arg)
			}
			joined = append(joined, list...)
		}
		return joined, nil
	case "union":
		joined := map[string]any{}
		for _, arg := range args {
			o, ok := arg.(map[string]any)
			if !ok {
				return nil, s.errorf(n, "union of %T", arg)
			}
			maps.Copy(joined, o)
		}
		return joined, nil
	case "json":
		var v any
		if text, ok := only(args).(string); ok && json.Unmarshal([]byte(text), &v) == nil {
			return v, nil
		}
	case "bool":
		if text, ok := only(args).(string); ok && (text == "true" || text == "false") {
			return text == "true", nil
		}
	case "int":
		if text, ok := only(args).(string); ok {
			if i, err := strconv.ParseInt(text, 10, 64); err == nil {
				return i, nil
			}
		}
	case "length":
		if list, ok := only(args).([]any); ok {
			return int64(len(list)), nil
		}
	case "range", "join", "skip":
		if v, ok := listFunction(name, args); ok {
			return v, nil
		}
	case "split", "replace":
		if v, ok := textFunction(name, args); ok {
			return v, nil
		}
	case "readEnvironmentVariable":
		return s.variable(n, args)
	}
	return nil, s.errorf(n, "%s(%T...) is not evaluated", name, only(args))
}

func only(args []any) any {
	if len(args) == 1 {
		return args[0]
	}
	return nil
}

func listFunction(name string, args []any) (any, bool) {
	if len(args) != 2 {
		return nil, false
	}
	if name == "range" {
		start, ok := args[0].(int64)
		number, isInt := args[1].(int64)
		items := []any{}
		for i := range number {
			items = append(items, start+i)
		}
		return items, ok && isInt
	}
	list, ok := args[0].([]any)
	if name == "skip" {
		n, isInt := args[1].(int64)
		if !ok || !isInt || n < 0 {
			return nil, false
		}
		return list[min(int(n), len(list)):], true
	}
	separator, isText := args[1].(string)
	texts := make([]string, len(list))
	for i, item := range list {
		var is bool
		texts[i], is = item.(string)
		ok = ok && is
	}
	return strings.Join(texts, separator), ok && isText
}

func textFunction(name string, args []any) (any, bool) {
	texts := make([]string, len(args))
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return nil, false
		}
		texts[i] = text
	}
	switch {
	case name == "replace" && len(texts) == 3:
		return strings.ReplaceAll(texts[0], texts[1], texts[2]), true
	case name == "split" && len(texts) == 2:
		var parts []any
		for part := range strings.SplitSeq(texts[0], texts[1]) {
			parts = append(parts, part)
		}
		return parts, true
	}
	return nil, false
}

// identify returns a stand-in for a function of Azure: equal arguments give equal results.
func (s *scope) identify(n *Node, name string, args []any) (any, error) {
	for _, arg := range args {
		if _, ok := arg.(string); !ok {
			return nil, s.errorf(n, "%s of %T", name, arg)
		}
	}
	if name == "subscriptionResourceId" && len(args) == 2 {
		return fmt.Sprintf("/subscriptions/0/providers/%s/%s", args...), nil
	}
	sum := sha256.Sum256(fmt.Append(nil, args...))
	if name == "uniqueString" {
		return hex.EncodeToString(sum[:])[:13], nil
	}
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-"), nil
}

// variable reads the environment of the deployment.
func (s *scope) variable(n *Node, args []any) (any, error) {
	name, ok := append(args, nil)[0].(string)
	if !ok {
		return nil, s.errorf(n, "readEnvironmentVariable without a name")
	}
	if v, ok := s.deployment.environ[name]; ok {
		return v, nil
	}
	if len(args) == 2 {
		return args[1], nil
	}
	return nil, s.errorf(n, "the environment variable %s is not set and has no default", name)
}
