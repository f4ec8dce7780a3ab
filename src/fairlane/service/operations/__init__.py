"""Operations: what every interface can ask for, with plain values as JSON has them.

`table` names the function of each, its route, its arguments and its answer; `call` performs it;
`schemas` describes the answers.
"""
