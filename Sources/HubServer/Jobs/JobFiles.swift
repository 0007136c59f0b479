import Cryptography
import Foundation
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The files of jobs. What may wait for a disk runs on a thread of its own, so that no thread of the
/// cooperative pool, which answers requests, waits with it. (A queue of libdispatch would take one:
/// on Linux the two have the same.)
enum JobFiles {
  /// Runs blocking work.
  /// - Parameter work: Gets a question to ask between its steps: true once the task is cancelled.
  static func blocking<Value: Sendable>(
    _ work: @escaping @Sendable (_ isCancelled: @Sendable () -> Bool) throws -> Value
  ) async throws -> Value {
    let flag = CancelFlag()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(with: Result { try work { flag.isSet.load(ordering: .relaxed) } })
        }
      }
    } onCancel: {
      flag.isSet.store(true, ordering: .relaxed)
    }
  }

  private final class CancelFlag: Sendable {
    let isSet = Atomic<Bool>(false)
  }

  /// Opens a regular file to read it. Anything else, such as a pipe that nobody writes to, would
  /// wait forever.
  static func openForReading(_ path: String) throws(JobFault) -> FileHandle {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG
    else {
      if descriptor >= 0 { _ = close(descriptor) }
      throw JobFault("there is no such file in the directory for jobs")
    }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Makes a file that only this user may read, in place of what had its name.
  static func make(_ path: String) throws(JobFault) -> FileHandle {
    if let file = FileHandle.newPrivate(path) { return file }
    throw JobFault("a file of the job cannot be made")
  }

  /// Makes a folder that only this user may read, and those above it, where they are missing.
  static func makeFolder(_ folder: URL) throws {
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Copies by pieces and writes the copy out.
  /// - Parameter limit: In bytes.
  /// - Returns: The size in bytes.
  static func copy(_ source: String, to target: String, limit: Int64) async throws -> Int64 {
    try await blocking { isCancelled in
      let reading = try openForReading(source)
      let writing = try make(target)
      var size: Int64 = 0
      while let piece = try reading.read(upToCount: 1 << 20), !piece.isEmpty {
        if isCancelled() { throw CancellationError() }
        size += Int64(piece.count)
        guard size <= limit else { throw JobFault("the file has more than \(limit) bytes") }
        try writing.write(contentsOf: piece)
      }
      try writing.synchronize()
      return size
    }
  }

  /// A piece of a file; shorter at its end.
  static func read(_ path: String, at offset: Int64, count: Int) async throws -> [UInt8] {
    try await blocking { _ in
      guard let file = FileHandle(forReadingAtPath: path) else {
        throw JobFault("the working file of the job is gone")
      }
      try file.seek(toOffset: UInt64(offset))
      return Array(try file.read(upToCount: count) ?? Data())
    }
  }
}

/// The working files of one job.
struct JobWorkspace {
  private let folder: URL
  var input: String { folder.appending(path: "Input.txt").path }
  var output: String { folder.appending(path: "Output.txt").path }
  var failed: String { folder.appending(path: "Failed.txt").path }

  /// - Parameter job: The id; made by the server.
  init(_ workspace: URL, job: String) { folder = workspace.appending(path: job) }

  /// - Returns: Whether this machine had begun the job.
  func make() async throws -> Bool {
    try await JobFiles.blocking { [folder] _ in
      let isThere = FileManager.default.fileExists(atPath: folder.path)
      do {
        try JobFiles.makeFolder(folder)
      } catch {
        throw JobFault("the working directory of the job cannot be made")
      }
      return isThere
    }
  }

  func remove() async {
    try? await JobFiles.blocking { [folder] _ in try FileManager.default.removeItem(at: folder) }
  }

  /// Removes what jobs that are over have left.
  static func clear(_ workspace: URL, keeping jobs: Set<String>) async {
    try? await JobFiles.blocking { _ in
      for name in try FileManager.default.contentsOfDirectory(atPath: workspace.path)
      where !jobs.contains(name) {
        try? FileManager.default.removeItem(at: workspace.appending(path: name))
      }
    }
  }
}
