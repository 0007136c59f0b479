import Foundation

/// One reader of what a network brings, and what has to be true of it for every input.
struct FuzzTarget: Sendable {
  let name: String
  /// Reads the input; a rule that does not hold traps through ``expect(_:_:)``.
  let run: @Sendable (ArraySlice<UInt8>) -> Void

  static let all: [FuzzTarget] = [
    .accessSignature, .connectionString, .tagExpression, .template, .atom, .installation,
    .installationPatch, .multipart, .registrationFilter, .continuationToken,
    .serverSession, .clientSession, .eventStream,
  ]

  /// The one that `BELFRY_FUZZ_TARGET` names; the arguments of the program are libFuzzer's.
  static let chosen: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["BELFRY_FUZZ_TARGET"] ?? ""
    if let target = all.first(where: { $0.name == name }) { return target }
    let names = all.map(\.name).joined(separator: ", ")
    print("BELFRY_FUZZ_TARGET is '\(name)'; it must be one of \(names)")
    exit(64)
  }()
}

/// Ends the run when a rule does not hold; libFuzzer then keeps the input.
func expect(_ holds: Bool, _ rule: String) {
  guard !holds else { return }
  print("fuzz: broken rule: \(rule)")
  fatalError(rule)
}

/// The input as text; what is not UTF-8 is repaired, as a server does with a header.
func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

/// The input cut at its first zero bytes, for readers that take several texts; missing ones are
/// empty.
func fields(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [ArraySlice<UInt8>] {
  var parts = bytes.split(separator: 0, maxSplits: count - 1, omittingEmptySubsequences: false)
  while parts.count < count { parts.append([]) }
  return parts
}

/// What libFuzzer calls for every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTarget.chosen.run(Array(UnsafeBufferPointer(start: start, count: count))[...])
  return 0
}
