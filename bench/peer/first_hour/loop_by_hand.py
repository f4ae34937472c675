# SPDX-License-Identifier: Apache-2.0
"""examples/cookbook/loop_by_hand.cpp in PyTorch (Keras has no loop by hand of its own: it is that of its backend)."""
import torch
from digits import digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x, labels = digits(2000)
dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(labels))
loader = DataLoader(dataset, batch_size=25, shuffle=True)
model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(5):
    total, right = 0.0, 0
    for number, (images, targets) in enumerate(loader):
        outputs = model(images)
        loss = loss_function(outputs, targets)
        (loss / 4).backward()
        total += loss.item() * len(targets)
        right += (outputs.argmax(1) == targets).sum().item()
        if number % 4 == 3:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}: loss {total / 2000:.3f}, {100 * right / 2000:.1f} % right")
