package busemu

// Control calls hook for every call of an operation, OpAny for all. Hooks run in the order in
// which they were added; the first that returns a fault decides. remove removes the hook.
func (s *Server) Control(op Operation, hook Hook) (remove func()) {
	return s.hooks.Add(When(Call{Operation: op}, hook))
}
