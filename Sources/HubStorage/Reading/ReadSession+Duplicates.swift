import HubCore
import SQLDatabase

extension ReadSession {
  /// Finds the targets of a page whose handle a smaller number of the same audience has.
  ///
  /// - Parameters:
  ///   - suspects: The members of the page whose handle any other registration has.
  ///   - now: Registrations whose time is over then do not count; milliseconds since 1970.
  func markDuplicates(
    in page: inout TargetPage, suspects: Set<UInt32>, audience: Audience, asOf now: Int64
  ) throws {
    /// The first of the audience, by the handle.
    var holders: [String: UInt32] = [:]
    for index in page.targets.indices {
      let target = page.targets[index]
      guard let bit = UInt32(exactly: target.registration), suspects.contains(bit) else { continue }
      let handle = page.handles[target.handle].withUnsafeBytes {
        String(decoding: handleIdentity($0), as: UTF8.self)
      }
      let first: UInt32
      if let known = holders[handle] {
        first = known
      } else {
        first =
          try firstHolder(of: handle, like: target.registration, in: audience, asOf: now) ?? bit
        holders[handle] = first
      }
      if first < bit { page.targets[index].isDuplicate = true }
    }
  }

  private func firstHolder(
    of handle: String, like registration: RegistrationID, in audience: Audience, asOf now: Int64
  ) throws -> UInt32? {
    let holders = try holders(of: handle, like: registration, asOf: now)
    return try withBitmaps(of: audience.tags) { bitmaps in
      holders.first { audience.contains($0, bitmaps) }
    }
  }

  /// All native registrations with the handle of one of them, in rising order.
  private func holders(
    of handle: String, like registration: RegistrationID, asOf now: Int64
  ) throws -> [UInt32] {
    let row = try connection.statement(
      """
      SELECT id, handle FROM registration WHERE template IS NULL AND handle_hash =
        (SELECT handle_hash FROM registration WHERE id = ?1)
        AND (expires_at IS NULL OR expires_at > ?2) ORDER BY id
      """)
    try row.bind(registration, at: 1)
    try row.bind(now, at: 2)
    var holders: [UInt32] = []
    while try row.step() {
      if row.hasHandle(handle, column: 1), let bit = UInt32(exactly: row.integer(0)) {
        holders.append(bit)
      }
    }
    return holders
  }
}
