/// A boolean expression over tags that says who gets a notification (spec `tags.md` section 2).
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
