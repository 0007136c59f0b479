/// A tag expression whose tags have been looked up.
indirect enum AudienceTerm {
  /// A tag that no registration carries.
  case nobody
  /// A tag of the index.
  case tag(Int64)
  /// Registrations looked up for this query alone: those of an implicit tag.
  case these(Bitmap)
  case not(AudienceTerm)
  case and(AudienceTerm, AudienceTerm)
  case or(AudienceTerm, AudienceTerm)

  /// The tags whose bitmaps ``evaluate(within:bitmaps:)`` needs.
  func collectTags(into tags: inout Set<Int64>) {
    switch self {
    case .nobody, .these: break
    case .tag(let tag): tags.insert(tag)
    case .not(let inner): inner.collectTags(into: &tags)
    case .and(let left, let right), .or(let left, let right):
      left.collectTags(into: &tags)
      right.collectTags(into: &tags)
    }
  }

  /// The members of `scope` for which the expression is true, in a bitmap of the caller's own.
  func evaluate(within scope: Bitmap, bitmaps: [Int64: Bitmap]) -> Bitmap {
    switch self {
    case .nobody: return Bitmap()
    case .tag(let tag): return bitmaps[tag].map(scope.intersection) ?? Bitmap()
    case .these(let some): return scope.intersection(some)
    case .not(let inner):
      return scope.subtracting(inner.evaluate(within: scope, bitmaps: bitmaps))
    case .and(let left, let right):
      let result = left.evaluate(within: scope, bitmaps: bitmaps)
      if case .not(let excluded) = right {
        result.subtract(excluded.evaluate(within: result, bitmaps: bitmaps))
        return result
      }
      return right.evaluate(within: result, bitmaps: bitmaps)
    case .or(let left, let right):
      let result = left.evaluate(within: scope, bitmaps: bitmaps)
      result.formUnion(right.evaluate(within: scope, bitmaps: bitmaps))
      return result
    }
  }

  /// Whether the expression is true for one registration.
  func matches(_ registration: UInt32, bitmaps: [Int64: Bitmap]) -> Bool {
    switch self {
    case .nobody: false
    case .tag(let tag): bitmaps[tag]?.contains(registration) ?? false
    case .these(let some): some.contains(registration)
    case .not(let inner): !inner.matches(registration, bitmaps: bitmaps)
    case .and(let left, let right):
      left.matches(registration, bitmaps: bitmaps) && right.matches(registration, bitmaps: bitmaps)
    case .or(let left, let right):
      left.matches(registration, bitmaps: bitmaps) || right.matches(registration, bitmaps: bitmaps)
    }
  }
}

/// The complete audience of a query.
struct Audience {
  /// The pseudo-tag of the kind that the query addresses.
  let kind: Int64
  /// `nil` means everyone of the kind.
  let term: AudienceTerm?
  /// Expired registrations, which are excluded.
  let expired: Bitmap?
  /// The tag of native registrations whose handle another one has too; `nil` when there are none.
  var sharedHandles: Int64?
  /// The bitmaps that the calls below need.
  let tags: Set<Int64>

  init(kind: Int64, term: AudienceTerm?, expired: Bitmap?) {
    self.kind = kind
    self.term = term
    self.expired = expired
    var tags: Set<Int64> = [kind]
    term?.collectTags(into: &tags)
    self.tags = tags
  }

  func count(_ bitmaps: [Int64: Bitmap]) -> Int {
    guard let universe = bitmaps[kind] else { return 0 }
    let scope = expired.map(universe.subtracting) ?? universe
    // A single tag needs no bitmap for its result.
    if case .tag(let tag) = term { return bitmaps[tag].map(scope.intersectionCount) ?? 0 }
    return (term?.evaluate(within: scope, bitmaps: bitmaps) ?? scope).count
  }

  /// All members; the bitmap must not be modified.
  func everyone(_ bitmaps: [Int64: Bitmap]) -> Bitmap {
    guard let universe = bitmaps[kind] else { return Bitmap() }
    let scope = expired.map(universe.subtracting) ?? universe
    return term?.evaluate(within: scope, bitmaps: bitmaps) ?? scope
  }

  /// The next members in rising order from `first` on, at most `limit`.
  ///
  /// Searches one range of numbers after the other, each twice as long as the last: a page of a
  /// large audience costs its own range only, a small audience no more than twice the whole.
  func members(from first: UInt32, limit: Int, _ bitmaps: [Int64: Bitmap]) -> [UInt32] {
    guard let universe = bitmaps[kind] else { return [] }
    let last = UInt64(universe.maximum)
    var found: [UInt32] = []
    var lower = UInt64(first)
    var width: UInt64 = 1 << 16
    while lower <= last && found.count < limit {
      let upper = min(lower | (width - 1), last)
      let scope = Bitmap(UInt32(lower)...UInt32(upper))
      scope.formIntersection(universe)
      if let expired { scope.subtract(expired) }
      let result = term?.evaluate(within: scope, bitmaps: bitmaps) ?? scope
      found += result.first(limit - found.count)
      lower = upper + 1
      width = min(width * 2, 1 << 32)
    }
    return found
  }

  /// Up to `limit` different members, drawn at random, in rising order.
  func sample(_ limit: Int, _ bitmaps: [Int64: Bitmap]) -> [UInt32] {
    let members = everyone(bitmaps)
    let count = members.count
    guard count > limit else { return members.first(limit) }
    // Floyd's algorithm: it draws without repeats, with one random number for each.
    var ranks: Set<Int> = []
    for last in (count - limit)..<count {
      let drawn = Int.random(in: 0...last)
      ranks.insert(ranks.contains(drawn) ? last : drawn)
    }
    return ranks.sorted().compactMap { members.value(at: UInt32($0)) }
  }

  func contains(_ registration: UInt32, _ bitmaps: [Int64: Bitmap]) -> Bool {
    guard bitmaps[kind]?.contains(registration) == true,
      expired?.contains(registration) != true
    else { return false }
    return term?.matches(registration, bitmaps: bitmaps) ?? true
  }
}
