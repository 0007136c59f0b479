import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The memory of one nghttp2 session: blocks that a stream frees are kept for the next one.
///
/// nghttp2 allocates and frees half a dozen small blocks a request. With a thousand requests in
/// flight they are freed in a different order than they were allocated, which is slow with a
/// general allocator. Blocks are sorted by size into free lists; larger ones go to `malloc`. The
/// kept memory is at most the session's peak, and is freed by ``destroy()``.
///
/// Owned by the session's thread, which alone calls nghttp2.
struct SessionMemory {
  /// Block sizes are multiples of this, so that every block is aligned for anything.
  private static let step = 64
  private static let classes = 16
  /// Space before each block: its class, and padding for alignment.
  private static let header = 16

  /// The first free block of each class; in each free block, the next one.
  private let lists: UnsafeMutablePointer<UnsafeMutableRawPointer?>

  init() {
    lists = .allocate(capacity: Self.classes)
    lists.initialize(repeating: nil, count: Self.classes)
  }

  /// The allocator for nghttp2, which copies it.
  var allocator: nghttp2_mem {
    nghttp2_mem(
      mem_user_data: lists,
      malloc: { size, lists in SessionMemory.take(size, lists) },
      free: { block, lists in SessionMemory.give(block, lists) },
      calloc: { count, size, lists in
        let (bytes, overflow) = count.multipliedReportingOverflow(by: size)
        guard !overflow, let block = SessionMemory.take(bytes, lists) else { return nil }
        return memset(block, 0, bytes)
      },
      realloc: { block, size, lists in SessionMemory.resize(block, size, lists) })
  }

  /// Frees the kept memory. The session must have been deleted.
  func destroy() {
    for index in 0..<Self.classes {
      while let block = lists[index] {
        lists[index] = block.load(as: UnsafeMutableRawPointer?.self)
        free(block - Self.header)
      }
    }
    lists.deallocate()
  }

  private static func take(
    _ size: Int, _ context: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer? {
    let index = size == 0 ? 0 : (size - 1) / step
    guard index < classes else {
      guard size <= Int.max - header, let block = malloc(size + header) else { return nil }
      block.storeBytes(of: size, as: Int.self)
      return block + header
    }
    let lists = lists(context)
    if let block = lists[index] {
      lists[index] = block.load(as: UnsafeMutableRawPointer?.self)
      return block
    }
    let room = (index + 1) * step
    guard let block = malloc(room + header) else { return nil }
    block.storeBytes(of: room, as: Int.self)
    return block + header
  }

  private static func give(_ block: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?) {
    guard let block else { return }
    let room = room(block)
    guard room <= classes * step else { return free(block - header) }
    let lists = lists(context)
    let index = room / step - 1
    block.storeBytes(of: lists[index], as: UnsafeMutableRawPointer?.self)
    lists[index] = block
  }

  private static func resize(
    _ block: UnsafeMutableRawPointer?, _ size: Int, _ context: UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer? {
    guard let block else { return take(size, context) }
    let room = room(block)
    guard size > room else { return block }
    guard let larger = take(size, context) else { return nil }
    memcpy(larger, block, room)
    give(block, context)
    return larger
  }

  private static func room(_ block: UnsafeMutableRawPointer) -> Int {
    (block - header).load(as: Int.self)
  }

  private static func lists(
    _ context: UnsafeMutableRawPointer?
  ) -> UnsafeMutablePointer<UnsafeMutableRawPointer?> {
    // nghttp2 hands back the pointer that `allocator` gave it.
    context!.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
  }
}
