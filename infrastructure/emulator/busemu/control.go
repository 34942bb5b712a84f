package busemu

// Control calls hook for every call of an operation, OpAny for all. Of several
// hooks, in the order they were added, the first that returns a fault decides.
// remove takes the hook away.
func (s *Server) Control(op Operation, hook Hook) (remove func()) {
	return s.hooks.Add(When(Call{Operation: op}, hook))
}
