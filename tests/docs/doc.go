// Package docs checks documents against the code: Go code in them compiles or runs and
// prints what they say, links lead somewhere, tables that are generated are up to date,
// and the packages that the README offers have a README and examples of their own.
package docs
