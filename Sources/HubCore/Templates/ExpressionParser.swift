import Wire

/// Parses one value of a template (docs/protocol/templates.md, sections 3, 4 and 9).
struct ExpressionParser {
  private let text: [UInt8]
  private var position: Int
  private let end: Int
  private var names: NameTable

  /// Maximum length of a property name (docs/protocol/templates.md, section 4).
  private static let nameLimit = 120

  /// - Parameters:
  ///   - text: The value as UTF-8, without the escapes of the document around it.
  ///   - names: Collects the names that the expression uses.
  /// - Returns: `nil` when the value is a literal.
  static func parse(
    _ text: [UInt8], names: inout NameTable
  ) throws(SyntaxFault) -> TemplateExpression? {
    guard TemplateExpression.isExpression(text.first) else { return nil }
    let hasBraces = text[0] == UInt8(ascii: "{")
    if hasBraces, text.count < 2 || text[text.count - 1] != UInt8(ascii: "}") {
      throw SyntaxFault("'}' is missing at the end", at: text.count)
    }
    var parser = ExpressionParser(
      text: text, position: hasBraces ? 1 : 0, end: hasBraces ? text.count - 1 : text.count,
      names: names)
    let expression = try parser.expression(hasBraces: hasBraces)
    names = parser.names
    return expression
  }

  private mutating func expression(hasBraces: Bool) throws(SyntaxFault) -> TemplateExpression {
    var terms: [TemplateExpression.Term] = []
    var number: Int?
    skipBlanks()
    if position == end { throw SyntaxFault("nothing stands between the braces", at: position) }
    while true {
      let start = position
      let term = try token()
      if case .reference(let reference) = term, reference.form == .number { number = start }
      terms.append(term)
      skipBlanks()
      if position == end { break }
      guard text[position] == UInt8(ascii: "+") else {
        throw SyntaxFault("only '+' may stand between two tokens", at: position)
      }
      position += 1
      skipBlanks()
      if position == end { throw SyntaxFault("a token is missing after '+'", at: position) }
    }
    if let number, terms.count > 1 {
      throw SyntaxFault("'#(…)' may only stand alone, without '+'", at: number)
    }
    return TemplateExpression(terms: terms, isNumber: number != nil && !hasBraces)
  }

  private mutating func token() throws(SyntaxFault) -> TemplateExpression.Term {
    guard end - position >= 3 else {
      throw SyntaxFault("a token has at least three characters", at: position)
    }
    switch text[position] {
    case UInt8(ascii: "$"): return try reference(.plain)
    case UInt8(ascii: "."): return try reference(.ellipsis)
    case UInt8(ascii: "%"): return try reference(.percentEncoded)
    case UInt8(ascii: "#"): return try reference(.number)
    case UInt8(ascii: "'"), UInt8(ascii: "\""): return .text(try quoted())
    default:
      throw SyntaxFault("a token begins with one of $ . % # ' \"", at: position)
    }
  }

  /// A literal in quotes; a doubled quote stands for one.
  private mutating func quoted() throws(SyntaxFault) -> [UInt8] {
    let start = position
    let quote = text[position]
    var value: [UInt8] = []
    position += 1
    while position < end {
      let byte = text[position]
      position += 1
      if byte == quote {
        guard position < end, text[position] == quote else { return value }
        position += 1
      }
      value.append(byte)
    }
    throw SyntaxFault("the literal is not closed", at: start)
  }

  private mutating func reference(
    _ form: TemplateExpression.Form
  ) throws(SyntaxFault) -> TemplateExpression.Term {
    let sign = Character(UnicodeScalar(text[position]))
    if form == .plain, end - position >= 5,
      text[position..<position + 5].elementsEqual("$body".utf8)
    {
      throw SyntaxFault("'$body' is not supported", at: position)
    }
    position += 1
    guard text[position] == UInt8(ascii: "(") else {
      throw SyntaxFault(
        "'(' is expected after '\(sign)'; for a literal text write {'…'}", at: position)
    }
    position += 1
    let spelling = try name()
    let name = names.index(of: spelling)
    let fallback = peek() == UInt8(ascii: ":") ? try fallback() : nil
    let limit = peek() == UInt8(ascii: ",") ? try limit(form, sign) : nil
    if form == .ellipsis, limit == nil, peek() == UInt8(ascii: ")") {
      throw SyntaxFault("'.(…)' needs a length, as in .(name, 20)", at: position)
    }
    guard peek() == UInt8(ascii: ")") else {
      if position == end { throw SyntaxFault("')' is missing", at: position) }
      throw SyntaxFault("a character stands where ')' is expected", at: position)
    }
    position += 1
    return .reference(.init(form: form, name: name, fallback: fallback, limit: limit))
  }

  private mutating func name() throws(SyntaxFault) -> String {
    skipBlanks()
    let start = position
    while position < end, text[position].isNameByte { position += 1 }
    let name = text[start..<position]
    skipBlanks()
    switch peek() {
    case nil: throw SyntaxFault("')' is missing", at: position)
    case UInt8(ascii: ")"), UInt8(ascii: ","), UInt8(ascii: ":"): break
    default:
      throw SyntaxFault(
        "a property name holds only letters A to Z, digits and '_'", at: position)
    }
    if name.isEmpty { throw SyntaxFault("the property name is missing", at: start) }
    if name.count > Self.nameLimit {
      throw SyntaxFault("a property name has at most \(Self.nameLimit) characters", at: start)
    }
    return String(decoding: name, as: UTF8.self)
  }

  /// `:{text}`, in which `\x` stands for `x`.
  private mutating func fallback() throws(SyntaxFault) -> [UInt8] {
    position += 1
    let start = position
    guard peek() == UInt8(ascii: "{") else {
      throw SyntaxFault("'{' is expected after ':'", at: position)
    }
    position += 1
    var value: [UInt8] = []
    while position < end, text[position] != UInt8(ascii: "}") {
      if text[position] == UInt8(ascii: "\\") { position += 1 }
      guard position < end else { break }
      value.append(text[position])
      position += 1
    }
    guard position < end else { throw SyntaxFault("the default text is not closed", at: start) }
    position += 1
    skipBlanks()
    return value
  }

  /// Parses `, n`; a number out of range becomes the largest.
  private mutating func limit(
    _ form: TemplateExpression.Form, _ sign: Character
  ) throws(SyntaxFault) -> Int {
    if form == .percentEncoded || form == .number {
      throw SyntaxFault("'\(sign)(…)' takes no length", at: position)
    }
    position += 1
    skipBlanks()
    let start = position
    var value = 0
    while position < end, text[position].isDigit {
      let (tens, isTooGreat) = value.multipliedReportingOverflow(by: 10)
      let (sum, isGreater) = tens.addingReportingOverflow(Int(text[position] - 0x30))
      value = isTooGreat || isGreater ? Int.max : sum
      position += 1
    }
    let isNumber = position > start
    skipBlanks()
    guard isNumber, position == end || text[position] == UInt8(ascii: ")") else {
      throw SyntaxFault("the length must be a whole number, 0 or more", at: start)
    }
    return value
  }

  private func peek() -> UInt8? { position < end ? text[position] : nil }

  private mutating func skipBlanks() {
    while position < end, text[position].isBlank { position += 1 }
  }
}
