package import Authentication

/// What an operator may do in a hub; each may do what those before it may.
package enum OperatorRole: String, Comparable, CaseIterable, Sendable {
  /// Looks: all that Send or Manage may read, but no keys and nothing secret of credentials.
  case viewer
  /// Sends, schedules, aborts.
  case sender
  /// Everything in the hub.
  case manager

  package static func < (one: Self, other: Self) -> Bool { one.rank < other.rank }
  private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// The roles of an operator, as the operator file has them: `*=viewer,shop=manager`. The asterisk
/// stands for every hub; what is said of a hub by its name counts there in its place.
package struct OperatorRoles: Hashable, Sendable, CustomStringConvertible {
  package private(set) var everywhere: OperatorRole?
  /// By the names in lower case.
  package private(set) var byHub: [String: OperatorRole] = [:]

  /// - Returns: `nil` for a text that names no role, or that says two things of one hub.
  package init?(_ text: String) {
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", omittingEmptySubsequences: false)
      guard sides.count == 2, let role = OperatorRole(rawValue: String(sides[1])) else {
        return nil
      }
      if sides[0] == "*" {
        guard everywhere == nil else { return nil }
        everywhere = role
      } else {
        let hub = sides[0].lowercased()
        guard !hub.isEmpty, !hub.contains(where: \.isWhitespace),
          byHub.updateValue(role, forKey: hub) == nil
        else { return nil }
      }
    }
  }

  package subscript(hub: String) -> OperatorRole? { byHub[hub.lowercased()] ?? everywhere }

  package var description: String {
    ((everywhere.map { ["*=\($0.rawValue)"] } ?? [])
      + byHub.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" })
      .joined(separator: ",")
  }
}

extension UserFile.Form {
  /// Operators with their roles; a file that nobody has made yet has none.
  package static let operators = UserFile.Form(
    command: "belfry operator add", mayBeMissing: true, honoursGoodLines: true,
    isRemark: { OperatorRoles($0) != nil })
}
