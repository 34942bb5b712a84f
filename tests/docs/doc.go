// Package docs compares the documents with the code. Go code in them must compile, or run
// and print the documented output. Links must resolve, generated tables must be current,
// and every package that the README offers must have its own README and examples.
package docs
