import Testing

@testable import NotificationHubs

@Suite("Tag expressions (spec tags.md)")
struct TagExpressionTests {
  /// The registrations of docs/protocol/tags.md, section 3.
  static let registrations: [Set<Tag>] = [
    ["red", "en", .installation("i-1"), .user("bob")],
    ["red", "blue"],
    [],
    ["blue", "en", "vip:gold", "main"],
  ]

  @Test(
    "every row of the example table reaches whom it should",
    arguments: [
      ("red", "1100"), ("RED", "1100"), ("red || blue", "1101"), ("red||blue", "1101"),
      ("red && blue", "0100"), ("red && !blue", "1000"), ("!red", "0011"), ("! ! red", "1100"),
      ("!red && !blue", "0010"), ("!(red || blue)", "0010"), ("$InstallationId:{i-1}", "1000"),
      ("$UserId:{bob} || vip:gold", "1001"), ("(red || blue) && en", "1001"),
      ("red && (blue || en) && !vip:gold", "1100"), ("main", "0001"),
      ("$userid:{BOB} && !beta", "1000"), ("\tred\t&&blue ", "0100"), ("!(!red)", "1100"),
      ("!!!red", "0011"), ("((((red))))", "1100"),
    ])
  func examples(text: String, expected: String) throws {
    let expression = try TagExpression(parsing: text)
    let reached = Self.registrations.map { expression.matches($0) ? "1" : "0" }.joined()
    #expect(reached == expected)
    let again = try TagExpression(parsing: expression.description)
    #expect(again == expression)
  }

  @Test(
    "the truth tables hold",
    arguments: [
      ("a || b && c", "00011111"), ("(a || b) && c", "00010101"),
      ("!a && b", "00110000"), ("!(a && b)", "11111100"), ("!a || b", "11110011"),
    ])
  func truthTables(text: String, expected: String) throws {
    let expression = try TagExpression(parsing: text)
    let values = (0..<8).map { row in
      var tags: Set<Tag> = []
      if row & 4 != 0 { tags.insert("a") }
      if row & 2 != 0 { tags.insert("b") }
      if row & 1 != 0 { tags.insert("c") }
      return expression.matches(tags) ? "1" : "0"
    }
    #expect(values.joined() == expected)
  }

  @Test("the documented example is true for Boston with one of the two teams")
  func documentedExample() throws {
    let fans = try TagExpression(
      parsing: "(follows_RedSox || follows_Cardinals) && location_Boston")
    #expect(fans.matches(["follows_RedSox", "location_Boston"]))
    #expect(fans.matches(["follows_Cardinals", "location_Boston"]))
    #expect(!fans.matches(["follows_RedSox", "follows_Cardinals"]))
    #expect(!fans.matches(["location_Boston"]))
    let others = try TagExpression(parsing: "(location_Boston && !follows_Cardinals)")
    #expect(others.matches(["location_Boston"]))
    #expect(!others.matches(["location_Boston", "follows_Cardinals"]))
  }

  @Test(
    "every row of the table of invalid input is refused for its reason",
    arguments: [
      ("", TagExpressionError.Kind.empty), (" \t ", .empty),
      ("red &", .syntax), ("red & blue", .syntax), ("red | blue", .syntax), ("red &&", .syntax),
      ("&& red", .syntax), ("!", .syntax), ("()", .syntax), ("red blue", .syntax),
      ("red and blue", .syntax), ("Template Name", .syntax), ("(red", .syntax), ("red)", .syntax),
      ("red !blue", .syntax), ("red (blue)", .syntax), ("red || || blue", .syntax),
      ("(red) blue", .syntax), ("!(red", .syntax), (")(", .syntax),
      ("red,blue", .invalidTag), ("a*", .invalidTag), ("a;b", .invalidTag),
      ("'red'", .invalidTag), ("$InstallationId:i-1", .invalidTag), ("$Foo:{x}", .invalidTag),
      ("$UserId:{}", .invalidTag), (String(repeating: "a", count: 121), .invalidTag),
      ("$", .invalidTag), ("$UserId:{a}}", .invalidTag),
      (list(21, " || "), .tooManyTags), (list(7, "&&"), .tooManyTags),
      ("!a||b||c||d||e||f||g", .tooManyTags), ("t||t||t||t||t||t||!t", .tooManyTags),
    ])
  func invalidInput(text: String, kind: TagExpressionError.Kind) {
    let error = #expect(throws: TagExpressionError.self) { try TagExpression(parsing: text) }
    #expect(error?.kind == kind)
    if kind == .invalidTag {
      #expect(
        error?.message == "An invalid tag(s) '\(text)' was supplied. Valid tag characters are "
          + "alphanumeric, _, @, -, ., : and #")
    }
  }

  @Test(
    "expressions at the limits are valid",
    arguments: [
      list(20, "||"), list(6, " && "), "(a||b)&&(c||d)&&(e||f)", "!a||b||c||d||e||f",
      String(repeating: "a", count: 120),
    ])
  func limits(text: String) throws {
    _ = try TagExpression(parsing: text)
  }

  @Test("limits can be set, but not without end")
  func otherLimits() throws {
    let wide = TagExpressionLimits(alternatives: 1_000_000, combinations: 1_000_000)
    _ = try TagExpression(parsing: Self.list(1_000, "||"), limits: wide)
    let error = #expect(throws: TagExpressionError.self) {
      try TagExpression(parsing: Self.list(100_000, "&&"), limits: wide)
    }
    #expect(error?.kind == .tooManyTags)
  }

  static func list(_ count: Int, _ separator: String) -> String {
    (1...count).map { "t\($0)" }.joined(separator: separator)
  }

  @Test("depth costs no stack", arguments: ["!", "(", "!("])
  func depth(sign: String) throws {
    let deep = String(repeating: sign, count: 60_000)
    #expect(throws: TagExpressionError.self) { try TagExpression(parsing: deep) }
    let closing = sign == "!" ? "" : String(repeating: ")", count: 60_000)
    let expression = try TagExpression(parsing: deep + "red" + closing)
    #expect(expression == "red")
    _ = try? TagExpression(parsing: deep + "red" + closing + ")")
  }

  @Test("a Swift expression prints with no more parentheses than it takes")
  func printing() {
    let expressions: [(TagExpression, String)] = [
      ("12345" && !"beta", "12345 && !beta"),
      ("a" || "b" && "c", "a || b && c"),
      (("a" || "b") && "c", "(a || b) && c"),
      (!("a" && "b"), "!(a && b)"),
      (!("a" || !"b"), "!(a || !b)"),
      ("a" && ("b" && "c"), "a && b && c"),
      (.user("bob") && !"beta", "$UserId:{bob} && !beta"),
      (.installation("i-1"), "$InstallationId:{i-1}"),
    ]
    for (expression, text) in expressions { #expect(expression.description == text) }
    let any = TagExpression.any(of: ["a", "b", "c"])
    #expect(any?.description == "a || b || c")
    #expect(TagExpression.any(of: []) == nil)
  }

  @Test("an expression needs no annotation")
  func inference() {
    let audience = "12345" && !"beta"
    #expect(audience == .and(.tag("12345"), .not(.tag("beta"))))
  }
}

@Suite("Tags (spec tags.md 1)")
struct TagTests {
  @Test(
    "valid tags, blanks at the ends dropped",
    arguments: [
      ("news", "news"), (" news\t", "news"), ("a_@#.:-Z9", "a_@#.:-Z9"), ("åøπ日", "åøπ日"),
      ("$UserId:{a=b}", "$UserId:{a=b}"), ("$installationid:{X}", "$installationid:{X}"),
    ])
  func valid(text: String, kept: String) throws {
    #expect(try Tag(rawValue: text).validated().rawValue == kept)
  }

  @Test(
    "invalid tags",
    arguments: [
      "", " ", "a b", "a,b", "a/b", "a=b", "(a)", "a\u{0}", "€", "$x", "$UserId:x",
      String(repeating: "é", count: 121),
    ])
  func invalid(text: String) {
    #expect(throws: WireFormatError.self) { try Tag(rawValue: text).validated() }
  }

  @Test("letter case does not tell tags apart")
  func equality() {
    #expect(Tag("Red") == "red")
    #expect(Set<Tag>(["Red", "RED", "red"]).count == 1)
  }
}
