package e2e // want: header
