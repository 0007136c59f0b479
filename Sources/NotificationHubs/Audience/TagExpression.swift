/// A boolean expression over tags that says who gets a notification (spec `tags.md` section 2).
///
/// ```swift
/// let audience: TagExpression = "12345" && !"beta"
/// ```
public indirect enum TagExpression: Hashable, Sendable {
  /// True for a registration that carries the tag.
  case tag(Tag)
  case not(TagExpression)
  case and(TagExpression, TagExpression)
  case or(TagExpression, TagExpression)
}
