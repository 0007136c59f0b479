import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension MasterKey {
  /// The form in a file.
  var line: String { Base64.encode(bytes) + "\n" }

  /// Reads the key file.
  /// - Throws: ``CryptographyError``: file when it is missing or unreadable, malformed when it has
  ///   other contents.
  package static func load(file path: String) throws(CryptographyError) -> MasterKey {
    guard let key = try loadIfPresent(file: path) else { throw missing(path) }
    return key
  }

  static func missing(_ path: String) -> CryptographyError {
    CryptographyError(
      .file,
      """
      There is no master key at \(path). Put back the file that belongs to this store; without it \
      the stored keys and credentials cannot be read.
      """)
  }

  /// Reads the key file, or creates one with a new key (mode 0600) when there is none.
  ///
  /// The file is created atomically, and by only one of several processes that start together; the
  /// others read it.
  /// - Returns: The key, and whether it was just created.
  package static func loadOrCreate(
    file path: String
  ) throws(CryptographyError) -> (key: MasterKey, created: Bool) {
    if let key = try loadIfPresent(file: path) { return (key, false) }
    let key = try MasterKey()
    let draft = path + ".new-" + Hex.encode(try SecureRandom.bytes(8))
    defer { unlink(draft) }
    try write(key.line, toNew: draft)
    guard link(draft, path) == 0 else {
      let reason = errno
      if reason == EEXIST, let other = try loadIfPresent(file: path) { return (other, false) }
      throw failure("make the master key file", path, reason)
    }
    try keepName(of: path)
    return (key, true)
  }

  /// Syncs the directory, so that the file's name survives a power cut: secrets sealed from now on
  /// depend on it.
  static func keepName(of path: String) throws(CryptographyError) {
    let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("keep the master key file", path, errno) }
    defer { close(descriptor) }
    // Some file systems cannot sync a directory and return EINVAL; nothing more can be done there.
    guard fsync(descriptor) == 0 || errno == EINVAL else {
      throw failure("keep the master key file", path, errno)
    }
  }

  private static func loadIfPresent(file path: String) throws(CryptographyError) -> MasterKey? {
    guard let text = try text(ofFile: path) else { return nil }
    return try MasterKey(text: text, origin: "the file \(path)")
  }

  /// - Returns: `nil` when there is no such file.
  static func text(ofFile path: String) throws(CryptographyError) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = errno
      if reason == ENOENT { return nil }
      throw failure("read the master key file", path, reason)
    }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1024)
    let count = read(descriptor, &buffer, buffer.count)
    guard count >= 0 else { throw failure("read the master key file", path, errno) }
    return String(decoding: buffer[..<count], as: UTF8.self)
  }

  static func write(_ text: String, toNew path: String) throws(CryptographyError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("make the master key file", path, errno) }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map { Self.writeOut(descriptor, $0 + done, bytes.count - done) } ?? -1
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure("write the master key file", path, errno) }
      done += count
    }
    guard fsync(descriptor) == 0 else { throw failure("write the master key file", path, errno) }
  }

  /// The system call, under a name that the function above does not shadow.
  private static func writeOut(_ file: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    #if canImport(Glibc)
      Glibc.write(file, bytes, count)
    #elseif canImport(Musl)
      Musl.write(file, bytes, count)
    #else
      Darwin.write(file, bytes, count)
    #endif
  }

  static func failure(
    _ action: String, _ path: String, _ reason: Int32
  ) -> CryptographyError {
    CryptographyError(
      .file,
      """
      Cannot \(action) \(path): \(String(cString: strerror(reason))). Check that the directory \
      exists and that this user may use it.
      """)
  }
}
