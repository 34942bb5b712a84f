package query_test

import (
	"errors"
	"fmt"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

// A query runs over raw documents, one at a time.
func Example() {
	q, err := query.Parse(`SELECT c.id, c.name.last AS name FROM c WHERE c.age >= @age AND STARTSWITH(c.name.last, 'L')`)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := q.Bind(query.Params{"@age": []byte("18")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, doc := range []string{
		`{"id":"1","name":{"first":"Ada","last":"Lovelace"},"age":36}`,
		`{"id":"2","name":{"first":"Alan","last":"Turing"},"age":41}`,
		`{"id":"3","name":{"last":"Lu"}}`,
	} {
		if !b.Match([]byte(doc)) {
			continue
		}
		if row, ok := b.Project(nil, []byte(doc)); ok {
			fmt.Println(string(row))
		}
	}
	// Output: {"id":"1","name":"Lovelace"}
}

// WHERE often names its documents, so that no scan is needed.
func ExampleBound_Lookups() {
	q, err := query.Parse(`SELECT * FROM c WHERE c.tenant = 'a' AND c.id IN ('1', '2')`)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := q.Bind(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	at, ok := b.Lookups([]string{"/tenant"})
	for _, l := range at {
		fmt.Println(ok, l.ID, l.PartitionKey[0].Text())
	}
	// Output:
	// true 1 a
	// true 2 a
}

// A syntax error has a position, an unsupported construct has a name.
func ExampleParse_errors() {
	_, err := query.Parse(`SELECT c.order FROM c`)
	fmt.Println(err)

	_, err = query.Parse(`SELECT VALUE udf.tax(c.price) FROM c`)
	var unsupported *query.UnsupportedError
	fmt.Println(errors.As(err, &unsupported), unsupported.Construct)
	// Output:
	// syntax error at position 9: "order" is a reserved word: it cannot be a property name (a property of that name is ["order"])
	// true a user-defined function
}
