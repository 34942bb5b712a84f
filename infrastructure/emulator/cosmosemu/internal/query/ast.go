package query

type selectQuery struct{}
