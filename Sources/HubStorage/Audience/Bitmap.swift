import CRoaring

/// A compressed set of registration numbers; owns its roaring bitmap.
///
/// Not `Sendable`: it belongs to its creator, or to the index that it was handed to.
/// - SeeAlso: <https://roaringbitmap.org>
final class Bitmap {
  private let handle: UnsafeMutablePointer<roaring_bitmap_t>

  /// - Parameter handle: The result of a library function that transfers ownership; it is null only
  ///   when memory is exhausted.
  private init(owning handle: UnsafeMutablePointer<roaring_bitmap_t>?) {
    guard let handle else { fatalError("out of memory for a bitmap") }
    self.handle = handle
  }

  convenience init() { self.init(owning: roaring_bitmap_create()) }

  convenience init(_ range: ClosedRange<UInt32>) {
    self.init(
      owning: roaring_bitmap_from_range(
        UInt64(range.lowerBound), UInt64(range.upperBound) + 1, 1))
  }

  convenience init(_ values: [UInt32]) {
    self.init()
    insert(values)
  }

  deinit { roaring_bitmap_free(handle) }

  func insert(_ value: UInt32) { roaring_bitmap_add(handle, value) }
  func insert(_ values: [UInt32]) { roaring_bitmap_add_many(handle, values.count, values) }
  func remove(_ value: UInt32) { roaring_bitmap_remove(handle, value) }
  func contains(_ value: UInt32) -> Bool { roaring_bitmap_contains(handle, value) }

  var isEmpty: Bool { roaring_bitmap_is_empty(handle) }
  var count: Int { Int(roaring_bitmap_get_cardinality(handle)) }
  /// 0 when empty.
  var maximum: UInt32 { roaring_bitmap_maximum(handle) }
  /// Memory in use, in bytes, without allocator overhead.
  var byteCount: Int { Int(roaring_bitmap_size_in_bytes(handle)) }

  func intersection(_ other: Bitmap) -> Bitmap {
    Bitmap(owning: roaring_bitmap_and(handle, other.handle))
  }
  func subtracting(_ other: Bitmap) -> Bitmap {
    Bitmap(owning: roaring_bitmap_andnot(handle, other.handle))
  }
  func formIntersection(_ other: Bitmap) { roaring_bitmap_and_inplace(handle, other.handle) }
  func formUnion(_ other: Bitmap) { roaring_bitmap_or_inplace(handle, other.handle) }
  func subtract(_ other: Bitmap) { roaring_bitmap_andnot_inplace(handle, other.handle) }
  func intersectionCount(_ other: Bitmap) -> Int {
    Int(roaring_bitmap_and_cardinality(handle, other.handle))
  }

  /// The value at a zero-based rank; `nil` beyond the last.
  func value(at rank: UInt32) -> UInt32? {
    var value: UInt32 = 0
    return roaring_bitmap_select(handle, rank, &value) ? value : nil
  }

  /// The smallest values from `lowest` on in rising order, at most `limit`.
  func first(_ limit: Int, from lowest: UInt32 = 0) -> [UInt32] {
    let smaller = lowest == 0 ? 0 : Int(roaring_bitmap_rank(handle, lowest - 1))
    let wanted = min(limit, count - smaller)
    guard wanted > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: wanted) { buffer, filled in
      let isDone = roaring_bitmap_range_uint32_array(handle, smaller, wanted, buffer.baseAddress)
      filled = isDone ? wanted : 0
    }
  }
}
