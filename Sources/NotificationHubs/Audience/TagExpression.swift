/// A boolean expression over tags that says who gets a notification (docs/protocol/tags.md,
/// section 2).
///
/// ```swift
/// let audience: TagExpression = "12345" && !"beta"
/// print(audience)  // 12345 && !beta
/// ```
/// A string literal is one tag; ``init(parsing:limits:)`` reads a whole expression.
public indirect enum TagExpression: Hashable, Sendable {
  /// True for a registration that carries the tag.
  case tag(Tag)
  case not(TagExpression)
  case and(TagExpression, TagExpression)
  case or(TagExpression, TagExpression)
}

extension TagExpression: ExpressibleByStringLiteral {
  public init(stringLiteral value: String) { self = .tag(Tag(rawValue: value)) }

  /// Reaches one installation.
  public static func installation(_ installationID: String) -> TagExpression {
    .tag(.installation(installationID))
  }

  /// Reaches every installation of one user.
  public static func user(_ userID: String) -> TagExpression { .tag(.user(userID)) }

  /// Reaches every device that has at least one of the tags; `nil` for no tags at all.
  public static func any(of tags: some Sequence<Tag>) -> TagExpression? {
    var all = tags.makeIterator()
    guard let first = all.next() else { return nil }
    var expression = TagExpression.tag(first)
    while let next = all.next() { expression = .or(expression, .tag(next)) }
    return expression
  }

  public static prefix func ! (operand: TagExpression) -> TagExpression { .not(operand) }

  public static func && (left: TagExpression, right: TagExpression) -> TagExpression {
    .and(left, right)
  }

  public static func || (left: TagExpression, right: TagExpression) -> TagExpression {
    .or(left, right)
  }
}

extension TagExpression {
  /// Whether a registration with these tags gets the notification.
  public func matches(_ tags: Set<Tag>) -> Bool { evaluate(tags.contains) }

  /// The expression's value when `isPresent` says which tags are there.
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
  /// The wire form, with no more parentheses than it takes.
  public var description: String {
    switch self {
    case .tag(let tag): tag.rawValue
    case .not(let operand): "!" + operand.text(within: 3)
    case .and(let left, let right): left.text(within: 2) + " && " + right.text(within: 2)
    case .or(let left, let right): left.text(within: 1) + " || " + right.text(within: 1)
    }
  }

  /// The text as the operand of an operator that binds this strongly.
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

/// How many tags an expression may name, counted with repetition (docs/protocol/tags.md,
/// section 2).
public struct TagExpressionLimits: Hashable, Sendable {
  /// For an expression with no operator but `||`.
  public let alternatives: Int
  /// For an expression with any `&&` or `!`.
  public let combinations: Int

  /// No limit goes beyond this, whatever is asked: what has been parsed is walked recursively.
  package static let ceiling = 1_000

  /// - Parameters:
  ///   - alternatives: 1 to 1000; numbers outside are moved to the nearer end.
  ///   - combinations: the same.
  public init(alternatives: Int, combinations: Int) {
    self.alternatives = min(max(alternatives, 1), Self.ceiling)
    self.combinations = min(max(combinations, 1), Self.ceiling)
  }

  /// Those of the service: 20 and 6.
  public static let service = TagExpressionLimits(alternatives: 20, combinations: 6)
}

/// Why a text is no tag expression.
public struct TagExpressionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of fault; a later version may add some.
  public struct Kind: Hashable, Sendable {
    private let name: String
    /// Nothing but blanks.
    public static let empty = Kind(name: "empty")
    /// Operators, operands and parentheses do not fit together.
    public static let syntax = Kind(name: "syntax")
    /// An operand is no valid tag.
    public static let invalidTag = Kind(name: "invalidTag")
    /// More tags than allowed.
    public static let tooManyTags = Kind(name: "tooManyTags")
  }

  public let kind: Kind
  /// The sentence with which a hub answers 400.
  public let message: String

  public var description: String { message }
}

extension TagExpression {
  /// Reads an expression in its wire form, such as `(red || blue) && !beta`.
  public init(
    parsing text: String, limits: TagExpressionLimits = .service
  ) throws(TagExpressionError) {
    var parser = TagExpressionParser(text, limits: limits)
    self = try parser.parse()
  }
}

/// Operator precedence with two stacks, so that no input can nest deeper than the machine's stack.
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

  /// Takes a tag, `!` or `(`.
  /// - Returns: `true` after a tag.
  private mutating func operand() throws(TagExpressionError) -> Bool {
    switch bytes[position] {
    case UInt8(ascii: "!"):
      isCombination = true
      position += 1
      // Two in a row cancel out: no depth to walk through later.
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

  /// Takes `&&`, `||` or `)`.
  /// - Returns: `true` after an operator, which wants an operand.
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
        // `!(!a)` comes here too, through its parentheses.
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
