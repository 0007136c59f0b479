package import NotificationHubs

extension NotificationRequest {
  /// Whether it names its devices, an installation or a user.
  package var isNarrow: Bool { isDirect || expression?.isNarrow ?? false }
}

extension TagExpression {
  /// Whether its form tells that it reaches the devices of one user at most.
  package var isNarrow: Bool {
    switch self {
    case .tag(let tag): tag.folded.hasPrefix("$installationid:") || tag.folded.hasPrefix("$userid:")
    case .not: false
    case .and(let left, let right): left.isNarrow || right.isNarrow
    case .or(let left, let right): left.isNarrow && right.isNarrow
    }
  }

  /// Tags, or several with OR between them, of which everybody in the audience has one; none when
  /// the expression asks for no tag.
  package var bounds: [TagExpression] {
    switch self {
    case .tag: return [self]
    case .not: return []
    case .and(let left, let right): return left.bounds + right.bounds
    case .or(let left, let right):
      guard let left = left.bounds.first, let right = right.bounds.first else { return [] }
      return [.or(left, right)]
    }
  }
}
