import Foundation

/// Shows on a terminal how far long work has come, in one line that is written over and over.
/// Where standard error is no terminal it shows nothing.
struct ProgressBar {
  private let isShown: Bool
  private var last = ContinuousClock.now - .seconds(1)
  private static let width = 30

  init(isShown: Bool = isatty(2) == 1) { self.isShown = isShown }

  /// - Parameters:
  ///   - fraction: 0 to 1; `nil` when nobody knows how much there is.
  ///   - text: What is done so far: `12000 lines`.
  mutating func show(_ fraction: Double?, _ text: String) {
    let now = ContinuousClock.now
    guard isShown, now - last > .milliseconds(100) else { return }
    last = now
    var line = "\r\u{1B}[K"
    if let fraction {
      let full = Int((min(max(fraction, 0), 1) * Double(Self.width)).rounded())
      line += "[" + String(repeating: "#", count: full)
      line += String(repeating: " ", count: Self.width - full) + "] \(Int(fraction * 100)) %  "
    }
    write(line + text)
  }

  /// Takes the line away.
  func clear() {
    if isShown { write("\r\u{1B}[K") }
  }

  private func write(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }
}
