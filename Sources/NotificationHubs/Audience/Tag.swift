/// A word that groups devices, such as `news` or `city:oslo` (spec `tags.md` section 1).
///
/// Two tags are equal when they differ in letter case only, but for the id of an installation; the
/// spelling is kept as written.
/// A `Tag` made from a literal is taken as it stands; ``validated()`` says whether the hub will
/// accept it. Implicit tags (`$InstallationId:{…}`, `$UserId:{…}`) are tags too.
public struct Tag: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The tag as written.
  public let rawValue: String

  /// Takes any text; ``validated()`` checks it.
  public init(rawValue: String) { self.rawValue = rawValue }
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  /// The form that comparison uses: lower case, but for the id in `$InstallationId:{…}`. Installation
  /// ids are compared exactly everywhere: a device called `ABC` must not get what is for `abc`.
  public var folded: String {
    let folded = rawValue.lowercased()
    guard folded.utf8.first == UInt8(ascii: "$"), folded.hasPrefix(Self.installationKeyword) else {
      return folded
    }
    return Self.installationKeyword + rawValue.dropFirst(Self.installationKeyword.count)
  }

  private static let installationKeyword = "$installationid:{"
  public var description: String { rawValue }

  public static func == (left: Tag, right: Tag) -> Bool { left.folded == right.folded }
  public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
}
