import NotificationHubs

extension NotificationExplanation.Term {
  /// The value of an expression, and of all its parts, for a device with these tags.
  ///
  /// The depth is that of the expression, which its parser bounds. A run of equal operators is told
  /// as one list.
  init(_ expression: TagExpression, tags: Set<Tag>) {
    let parts: [TagExpression] =
      switch expression {
      case .tag: []
      case .not(let inner): [inner]
      case .and:
        Self.operands(of: expression) { if case .and(let l, let r) = $0 { (l, r) } else { nil } }
      case .or:
        Self.operands(of: expression) { if case .or(let l, let r) = $0 { (l, r) } else { nil } }
      }
    self.init(
      text: expression.description, holds: expression.evaluate(tags.contains),
      parts: parts.map { Self($0, tags: tags) })
  }

  /// The operands of a run of one operator from left to right; without recursion, since the run may
  /// be long.
  private static func operands(
    of expression: TagExpression,
    _ split: (TagExpression) -> (TagExpression, TagExpression)?
  ) -> [TagExpression] {
    var operands: [TagExpression] = []
    var rest = [expression]
    while let next = rest.popLast() {
      if let (left, right) = split(next) {
        rest.append(right)
        rest.append(left)
      } else {
        operands.append(next)
      }
    }
    return operands
  }

  /// The tags that decide: of a false conjunction its false parts, and so on.
  var culprits: [String] {
    if parts.isEmpty { return [text] }
    let deciding = parts.filter { $0.holds == holds }
    // Under a negation it is the part's own value that decides.
    return (deciding.isEmpty ? parts : deciding).flatMap(\.culprits)
  }
}
