package classify

import (
	"testing"
)

var sqlCases = map[string]string{
	"SELECT 1": "read", "select * from t where a = 'drop table x';": "read",
	"DROP TABLE x": "destructive DROP TABLE", "select 1; drop table x": "destructive DROP TABLE",
	"SELECT 1; SELECT 2": "write several statements", "": "write no statement",
	"UPDATE t SET a = 1": "write UPDATE", "select * from t for update": "write UPDATE",
	"select * into x from t": "write INTO", "with d as (delete from t returning *) select * from d": "destructive DELETE FROM",
	"select nextval('s')": "write NEXTVAL", "select evil()": "write evil()", `select "evil"()`: "write evil()",
	"select s.lower('x')": "write lower()", "select pg_catalog.lower('x')": "read",
	"select $$ drop $$": "destructive DROP", "select 'it\\'s'": "read", "select 'it''s'": "read",
	"/*!50000 drop */ table t": "destructive DROP TABLE", "select /* drop /* x */ */ 1": "read",
}

func TestSQL(t *testing.T) {
	for text, want := range sqlCases {
		v := classifySQL(text)
		got := v.Operation.String()
		if v.Word != "" {
			got += " " + v.Word
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
