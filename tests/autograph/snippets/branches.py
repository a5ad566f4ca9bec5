"""Snippets of the table: `if`."""

# ruff: noqa  people write like this
from .table import case


@case(3, -3, 0)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@case(3, -3)
def if_alone(x):
    y = x
    if x > 0:
        y = x * 2
    return y


@case(3, -3, 0)
def if_elif(x):
    if x > 0:
        y = 1
    elif x < 0:
        y = -1
    else:
        y = 0
    return y


@case((1, 2), (2, 1), (0, 0))
def if_nested(a, b):
    r = 0
    if a > b:
        if a > 1:
            r = a
        else:
            r = b
    elif a < b:
        r = a + b
    return r


@case(5, -5)
def if_several_variables(x):
    a, b = x, x + 1
    if x > 0:
        a, b = b, a
    return a, b


@case(5, -5)
def if_temporaries_are_no_state(x):
    y = 0
    if x > 0:
        t = x + 1
        y = t * 2
    return y


@case(5, -5)
def if_values_born_in_both(x):
    if x > 0:
        p = 1
        q = x
    else:
        q = -x
        p = 2
    return p + q


@case(5, -5)
def if_returns_in_both(x):
    if x > 0:
        return x
    else:
        return -x


@case(5, -5)
def if_early_return(x):
    if x > 0:
        return x
    y = x * x
    return y


@case(5, -5, 0, 50)
def if_many_returns(x):
    if x > 10:
        return 10
    if x > 0:
        return x
    if x == 0:
        return 100
    return -x


@case((1, 1), (1, -1), (-1, 1), (-1, -1), ours=True)
def if_partial_return(a, b):
    r = 0
    if a > 0:
        if b > 0:
            return 7
        r = 1
    r = r + a
    return r


@case(4, -4)
def if_with_augmented(x):
    y = 10
    if x > 0:
        y += x
        y *= 2
    else:
        y -= x
    return y


@case(4, -4)
def if_pass(x):
    y = 1
    if x > 0:
        pass
    else:
        y = 2
    return y


@case(4, -4)
def if_dict_values(x):
    d = {"a": 1, "b": x}
    if x > 0:
        d = {"a": x, "b": 2}
    return d["a"] + d["b"]


@case(4, -4)
def if_dict_item(x):
    d = {"a": 1}
    if x > 0:
        d["a"] = x
    return d["a"]


class Box:
    def __init__(self, value):
        self.value = value
        self.log = 0

    def add(self, x):
        if x > 0:
            self.value = self.value + x
        return self.value

    def total(self, n):
        for i in range(n):
            self.log += i
        return self.log


@case(4, -4)
def if_attribute(x):
    b = Box(1)
    if x > 0:
        b.value = x
    return b.value


@case(4, -4)
def method_calls(x):
    b = Box(10)
    b.add(x)
    return b.add(x + 1)


@case(0, 4)
def method_with_loop(n):
    return Box(1).total(n)


class Parent:
    def shifted(self, x):
        if x > 0:
            return x + 1
        return x


class Child(Parent):
    def shifted(self, x):
        if x > 2:
            y = super().shifted(x)
        else:
            y = super(Child, self).shifted(-x)
        return y + 1


@case(4, -4, 1)
def super_calls(x):
    return Child().shifted(x)


class Private:
    def __init__(self):
        self.__hidden = 3

    def get(self, x):
        if x > 0:
            self.__hidden = x
        return self.__hidden


@case(4, -4, ours=True)
def private_names(x):
    return Private().get(x)


class Callable_:
    def __call__(self, x):
        if x > 0:
            return x + 1
        return x - 1


@case(4, -4)
def callable_objects(x):
    return Callable_()(x)


@case(4, -4)
def python_condition_stays_python(x):
    flag = True
    if flag:
        y = x
    return y


@case(4, -4)
def none_checks_are_python(x):
    y = None
    if y is None:
        y = x
    return y


class Annotated:
    value = 0


@case(4, -4, ours=True)
def annotated_assignments(x):
    box, items = Annotated(), [0]
    if x > 0:
        y: int = x * 2
        box.value: int = x
        items[0]: int = 5
    else:
        y: int
        box.value: int
        y = x * 3
        items[0]: "Missing" = 7
    return y, box.value, items[0]


@case(4, -4)
def annotation_before_an_assignment(x):
    if x > 0:
        z: int
        x = x + 1
    z = x
    return z


limit = 3


@case(4, -4, ours=True)
def annotation_in_parentheses_declares_nothing(x):
    if x > 0:
        (limit): int
        x = x + limit
    return x
