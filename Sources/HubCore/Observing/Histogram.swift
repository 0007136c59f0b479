/// How often values fell between which bounds.
package struct Histogram: Hashable, Sendable {
  /// The upper bounds, rising; what is above the last is counted too.
  package let bounds: [Double]
  /// One for each bound, and one for what is above: not yet added up.
  package private(set) var counts: [Int]
  package private(set) var sum = 0.0
  package private(set) var count = 0

  package init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  /// - Parameter weight: For so many equal values.
  package mutating func observe(_ value: Double, weight: Int = 1) {
    guard weight > 0, value.isFinite else { return }
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += weight
    sum += value * Double(weight)
    count += weight
  }

  /// From half a millisecond to ten seconds.
  package static let quick = Histogram(
    bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10])
  /// From a millisecond to half an hour, which is how long a notification lives.
  package static let delivery = Histogram(
    bounds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1800])
  /// Pieces of work in a transaction.
  package static let batches = Histogram(bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
}
