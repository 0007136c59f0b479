/// A word that groups devices, such as `news` or `city:oslo` (spec `tags.md` section 1).
///
/// Two tags are equal when they differ in letter case only; the spelling is kept as written.
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

  /// The form that comparison uses: lower case.
  public var folded: String { rawValue.lowercased() }
  public var description: String { rawValue }

  public static func == (left: Tag, right: Tag) -> Bool { left.folded == right.folded }
  public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
}
