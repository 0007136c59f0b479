/// A boolean expression over tags that selects the recipients of a notification
/// (docs/protocol/tags.md, section 2).
///
/// ```swift
/// let audience: TagExpression = "12345" && !"beta"
/// print(audience)  // 12345 && !beta
/// ```
/// A string literal is a single tag; ``init(parsing:limits:)`` parses a whole expression.
public indirect enum TagExpression: Hashable, Sendable {
  /// True for a registration that has the tag.
  case tag(Tag)
  /// True if the operand is false.
  case not(TagExpression)
  /// True if both operands are true.
  case and(TagExpression, TagExpression)
  /// True if at least one operand is true.
  case or(TagExpression, TagExpression)
}

extension TagExpression: ExpressibleByStringLiteral {
  /// Creates an expression of a single tag, without checking it.
  public init(stringLiteral value: String) { self = .tag(Tag(rawValue: value)) }

  /// An expression that matches one installation.
  public static func installation(_ installationID: String) -> TagExpression {
    .tag(.installation(installationID))
  }

  /// An expression that matches every installation of one user.
  public static func user(_ userID: String) -> TagExpression { .tag(.user(userID)) }

  /// An expression that matches every device with at least one of the tags; `nil` if there are no
  /// tags.
  public static func any(of tags: some Sequence<Tag>) -> TagExpression? {
    var all = tags.makeIterator()
    guard let first = all.next() else { return nil }
    var expression = TagExpression.tag(first)
    while let next = all.next() { expression = .or(expression, .tag(next)) }
    return expression
  }

  /// Negates an expression.
  public static prefix func ! (operand: TagExpression) -> TagExpression { .not(operand) }

  /// Combines two expressions so that both must match.
  public static func && (left: TagExpression, right: TagExpression) -> TagExpression {
    .and(left, right)
  }

  /// Combines two expressions so that at least one must match.
  public static func || (left: TagExpression, right: TagExpression) -> TagExpression {
    .or(left, right)
  }
}

extension TagExpression {
  /// Whether a registration with these tags matches.
  public func matches(_ tags: Set<Tag>) -> Bool { evaluate(tags.contains) }

  /// Evaluates the expression, with `isPresent` telling which tags are set.
  package func evaluate(_ isPresent: (Tag) -> Bool) -> Bool {
    switch self {
    case .tag(let tag): isPresent(tag)
    case .not(let operand): !operand.evaluate(isPresent)
    case .and(let left, let right): left.evaluate(isPresent) && right.evaluate(isPresent)
    case .or(let left, let right): left.evaluate(isPresent) || right.evaluate(isPresent)
    }
  }
}

extension TagExpression: CustomStringConvertible {
  /// The wire format, with as few parentheses as possible.
  public var description: String {
    switch self {
    case .tag(let tag): tag.rawValue
    case .not(let operand): "!" + operand.text(within: 3)
    case .and(let left, let right): left.text(within: 2) + " && " + right.text(within: 2)
    case .or(let left, let right): left.text(within: 1) + " || " + right.text(within: 1)
    }
  }

  /// The text as an operand of an operator with this binding strength.
  private func text(within strength: Int) -> String {
    let own =
      switch self {
      case .or: 1
      case .and: 2
      case .not, .tag: 3
      }
    return own < strength ? "(" + description + ")" : description
  }
}

/// The maximum number of tags in an expression, counted with repetition (docs/protocol/tags.md,
/// section 2).
public struct TagExpressionLimits: Hashable, Sendable {
  /// The limit for an expression with no operator other than `||`.
  public let alternatives: Int
  /// The limit for an expression with any `&&` or `!`.
  public let combinations: Int

  /// The upper bound of every limit: parsed expressions are walked recursively.
  package static let ceiling = 1_000

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - alternatives: The limit for expressions that only use `||`; clamped to 1...1000.
  ///   - combinations: The limit for expressions with any `&&` or `!`; clamped to 1...1000.
  public init(alternatives: Int, combinations: Int) {
    self.alternatives = min(max(alternatives, 1), Self.ceiling)
    self.combinations = min(max(combinations, 1), Self.ceiling)
  }

  /// The limits of the original service: 20 and 6.
  public static let service = TagExpressionLimits(alternatives: 20, combinations: 6)
}

/// The error thrown for an invalid tag expression.
public struct TagExpressionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of fault; later versions may add more.
  public struct Kind: Hashable, Sendable {
    private let name: String
    /// The text is empty or blank.
    public static let empty = Kind(name: "empty")
    /// Operators, operands and parentheses do not match up.
    public static let syntax = Kind(name: "syntax")
    /// An operand is not a valid tag.
    public static let invalidTag = Kind(name: "invalidTag")
    /// The expression has more tags than allowed.
    public static let tooManyTags = Kind(name: "tooManyTags")
  }

  /// The kind of fault.
  public let kind: Kind
  /// The message of a hub's 400 reply.
  public let message: String

  /// The same as ``message``.
  public var description: String { message }
}

extension TagExpression {
  /// Parses an expression in its wire format, such as `(red || blue) && !beta`.
  ///
  /// - Throws: ``TagExpressionError`` if the text is not a valid expression or exceeds the limits.
  public init(
    parsing text: String, limits: TagExpressionLimits = .service
  ) throws(TagExpressionError) {
    var parser = TagExpressionParser(text, limits: limits)
    self = try parser.parse()
  }
}

/// An operator-precedence parser with explicit stacks, so that no input can overflow the call
/// stack.
private struct TagExpressionParser {
  private enum Mark {
    case or, and, not, parenthesis

    var strength: Int {
      switch self {
      case .parenthesis: 0
      case .or: 1
      case .and: 2
      case .not: 3
      }
    }
  }

  private let text: String
  private let bytes: [UInt8]
  private let limits: TagExpressionLimits
  private var position = 0
  private var marks: [Mark] = []
  private var operands: [TagExpression] = []
  private var references = 0
  private var isCombination = false

  init(_ text: String, limits: TagExpressionLimits) {
    self.text = text
    self.bytes = Array(text.utf8)
    self.limits = limits
  }

  mutating func parse() throws(TagExpressionError) -> TagExpression {
    skipBlanks()
    guard position < bytes.count else {
      throw TagExpressionError(kind: .empty, message: "The supplied tag expression is empty.")
    }
    var wantsOperand = true
    while position < bytes.count {
      if wantsOperand {
        wantsOperand = try !operand()
      } else {
        wantsOperand = try operation()
      }
      skipBlanks()
    }
    guard !wantsOperand else { throw syntax("an operand is missing") }
    try reduce(toStrength: 1)
    guard marks.isEmpty, let result = operands.popLast() else { throw syntax("')' is missing") }
    try checkLimit()
    return result
  }

  /// Consumes a tag, `!` or `(`.
  /// - Returns: `true` after a tag.
  private mutating func operand() throws(TagExpressionError) -> Bool {
    switch bytes[position] {
    case UInt8(ascii: "!"):
      isCombination = true
      position += 1
      // Two in a row cancel out, which adds no depth to walk later.
      if marks.last == .not { marks.removeLast() } else { marks.append(.not) }
      return false
    case UInt8(ascii: "("):
      position += 1
      marks.append(.parenthesis)
      return false
    case UInt8(ascii: ")"), UInt8(ascii: "&"), UInt8(ascii: "|"):
      throw syntax("an operand is missing")
    default:
      let tag = Tag(rawValue: word())
      guard tag.isValid else {
        throw TagExpressionError(kind: .invalidTag, message: Tag.invalid(text).message)
      }
      references += 1
      if references > TagExpressionLimits.ceiling { try checkLimit() }
      operands.append(.tag(tag))
      return true
    }
  }

  /// Consumes `&&`, `||` or `)`.
  /// - Returns: `true` after an operator, which needs an operand.
  private mutating func operation() throws(TagExpressionError) -> Bool {
    let byte = bytes[position]
    switch byte {
    case UInt8(ascii: ")"):
      try reduce(toStrength: 1)
      guard marks.popLast() == .parenthesis else { throw syntax("'(' is missing") }
      position += 1
      return false
    case UInt8(ascii: "&"), UInt8(ascii: "|"):
      guard position + 1 < bytes.count, bytes[position + 1] == byte else {
        let sign = Character(UnicodeScalar(byte))
        throw syntax("'\(sign)' must be written '\(sign)\(sign)'")
      }
      let mark: Mark = byte == UInt8(ascii: "&") ? .and : .or
      if mark == .and { isCombination = true }
      try reduce(toStrength: mark.strength)
      marks.append(mark)
      position += 2
      return true
    default: throw syntax("an operator is missing")
    }
  }

  /// Applies the operators since the last parenthesis that bind at least this strongly.
  private mutating func reduce(toStrength strength: Int) throws(TagExpressionError) {
    while let mark = marks.last, mark.strength >= strength {
      marks.removeLast()
      guard let right = operands.popLast() else { throw syntax("an operand is missing") }
      if mark == .not {
        // Also reached for `!(!a)`, through its parentheses.
        if case .not(let inner) = right { operands.append(inner) } else { operands.append(!right) }
        continue
      }
      guard let left = operands.popLast() else { throw syntax("an operand is missing") }
      operands.append(mark == .and ? left && right : left || right)
    }
  }

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 {
      position += 1
    }
  }

  private mutating func word() -> String {
    let start = position
    loop: while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "!"),
        UInt8(ascii: "&"), UInt8(ascii: "|"):
        break loop
      default: position += 1
      }
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private func checkLimit() throws(TagExpressionError) {
    let limit = isCombination ? limits.combinations : limits.alternatives
    guard references > limit else { return }
    throw TagExpressionError(
      kind: .tooManyTags,
      message: "The supplied tag expression is invalid. It names more than \(limit) tags"
        + (isCombination ? " although it has && or !." : "."))
  }

  private func syntax(_ fault: String) -> TagExpressionError {
    TagExpressionError(
      kind: .syntax,
      message: "The supplied tag expression is invalid: \(fault) at offset \(position).")
  }
}
